// error.h: how the runtime and its backends fill a jfa_error.
#ifndef JFA_RUNTIME_ERROR_H
#define JFA_RUNTIME_ERROR_H

#include "runtime/jfa.h"

// Fills *err (unless it is NULL) with the status and the message, cut to what fits, and returns the status.
__attribute__((format(printf, 3, 4))) jfa_status jfa_error_set(jfa_error *err, jfa_status status,
                                                               const char *format, ...);

#endif
