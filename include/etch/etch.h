/* libetch: what a model and its parallel plan cost, exactly, and Chakra execution traces of every rank.
 *
 *     etch_session *session;
 *     etch_session_options options = {
 *         .struct_size = sizeof options, .spec = "models/llama.etch", .config = "llama3_8b"};
 *     const etch_answer *answer;
 *     if (etch_session_open(&options, &session) == ETCH_OK &&
 *         etch_session_query(session, "params(model)", NULL, &answer) == ETCH_OK)
 *         puts(answer->amount.text);
 *     etch_session_close(session);
 *
 * A session reads one spec and answers questions about it. Every function that can fail returns a status
 * (etch/status.h); unless it is ETCH_ENOMEM, the messages of the session say why. Numbers are exact decimal
 * text, whatever their size: "8030261248", or "7/2" where they are no integers.
 *
 * Options: every struct of options begins with `struct_size`, which the program sets to its size, so that a
 * library that is newer or older than the headers takes the members that both know. Members that the program
 * leaves out are zero, and zero is the usual choice. Options are refused, with ETCH_EINPUT and a message,
 * when `struct_size` is 0, and when they set what this library does not know yet.
 *
 * Ownership: what a function hands out belongs to the session and lives until `etch_session_release` or until
 * the session is closed, or until a call ends with ETCH_ELIMIT or ETCH_ENOMEM, which exhausts the session.
 * Texts are UTF-8 and end with a NUL. Texts and arrays that are given to the library are copied.
 *
 * Kinds are enums (etch/kinds.h), each with a function that gives the name which texts and JSON have for it.
 *
 * Threads: a session belongs to one thread at a time; `etch_session_cancel` may be called from any thread and
 * from a signal handler. Sessions are independent of each other: the library has no global state but one:
 * GMP takes its memory from functions of the whole process, and the library puts its own there, which serve
 * its calls of GMP and pass all others on to those that were there. A program that sets such functions does
 * so before it uses the library. The library prints nothing and does not end the process. */
#ifndef ETCH_ETCH_H
#define ETCH_ETCH_H

#include "etch/import.h"
#include "etch/kinds.h"
#include "etch/listings.h"
#include "etch/memory.h"
#include "etch/notation.h"
#include "etch/pipeline.h"
#include "etch/query.h"
#include "etch/session.h"
#include "etch/solve.h"
#include "etch/status.h"
#include "etch/sweep.h"
#include "etch/time.h"
#include "etch/traces.h"
#include "etch/version.h"
#include "etch/view.h"
#include "etch/world.h"

#endif
