/* What must hold of every training graph and of every placed graph. */
#ifndef ETCH_TEST_EXEC_CHECK_H
#define ETCH_TEST_EXEC_CHECK_H

#include "exec_ranks.h"

/* The loss of a step, forward passes only. */
double exec_loss(const etch_training *training, exec_data *data);

/* Runs a step on one rank: FLOP as the op table says, and the gradient of every weight against differences of
 * the loss; of every element, or along one random direction for each weight. NULL, or what is wrong. */
const char *exec_check_gradients(const etch_training *training, uint64_t seed, bool every_element);

/* Does a microbatch's backward pass read exactly those values of its forward pass that are said to be saved?
 * NULL, or what is wrong. */
const char *exec_check_saved(const etch_training *training, uint64_t seed);

/* Runs a step on all ranks, in program order and in the order of kernels, against one rank; checks the rules
 * first. NULL, or what is wrong. */
const char *exec_check_placed(const etch_placed *placed, uint64_t seed);
/* The same, and what a rank has of a microbatch: it keeps what is said, and has no more at a time beside that
 * than is said. */
const char *exec_check_memory(const etch_placed *placed, uint64_t seed);

/* The same in one order, without the rules; in that of the program also what a rank has of a microbatch. */
const char *exec_check_order(const etch_placed *placed, uint64_t seed, exec_order order);

/* Rules of docs/placement.md that say what is done, not what comes out: partial sums pass only where R4 lets
 * them, backward reduces nothing again, gradients are added once, and nothing is read that recomputation has
 * not saved. NULL, or what is wrong. */
const char *exec_check_rules(const etch_placed *placed);

/* A placed graph can be run exactly when its requirements on sizes are met. NULL, or what is wrong. */
const char *exec_check_requirements(const etch_placed *placed);

/* Are they met? */
bool exec_requirements_hold(const etch_placed *placed);

#endif
