/* A schedule that only tests have: two groups of microbatches, one after the other. */
#ifndef ETCH_TEST_TWO_GROUPS_H
#define ETCH_TEST_TWO_GROUPS_H

#include "graph/plan/schedules/schedule.h"

extern const etch_schedule etch_schedule_two_groups;

#endif
