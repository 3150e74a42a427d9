// check.c: jfac check FILE: all that can be known before launch, as text or JSON.
#include "compiler/cli/cli.h"

#include <stdio.h>

static int check(Session *session, const CliOptions *options) {
    bool good = jfac_check(session->jfac, &session->options);
    const Diag *diag = jfac_diag(session->jfac);
    if (options->json) {
        diag_print_json(diag, stdout);
        if (diag->error_count)
            return STATUS_INPUT;
        return good ? STATUS_GOOD : internal_error("the check failed without a reason");
    }
    int status = session_status(session, good);
    session_tell_tuned(session);
    if (!status)
        printf("%s: no errors (kernel %s, %s)\n", options->file, jfac_plan(session->jfac)->kernel_name,
               options->target);
    return status;
}

int command_check(CliOptions *options) {
    Session session;
    int status = session_open(&session, options);
    if (!status)
        status = check(&session, options);
    session_close(&session);
    return status;
}
