// error.c: statuses, messages and element types: the tables behind the first part of jfa.h.
#include "runtime/error.h"

#include <stdarg.h>
#include <stdio.h>

jfa_status jfa_error_set(jfa_error *err, jfa_status status, const char *format, ...) {
    if (!err)
        return status;
    err->status = status;
    va_list args;
    va_start(args, format);
    vsnprintf(err->message, sizeof err->message, format, args);
    va_end(args);
    return status;
}

const char *jfa_status_string(jfa_status status) {
    static const char *const TEXTS[JFA_STATUS_COUNT] = {
        [JFA_OK] = "no error",
        [JFA_ERROR_ARGUMENT] = "invalid argument",
        [JFA_ERROR_OUT_OF_MEMORY] = "out of memory",
        [JFA_ERROR_NOT_FOUND] = "not found",
        [JFA_ERROR_IO] = "file can't be read",
        [JFA_ERROR_IMAGE] = "not an image of this project",
        [JFA_ERROR_MANIFEST] = "malformed manifest",
        [JFA_ERROR_TARGET] = "built for another device",
        [JFA_ERROR_PROBLEM] = "problem doesn't fit the kernel",
        [JFA_ERROR_LIMIT] = "beyond a size limit",
        [JFA_ERROR_UNSUPPORTED] = "not supported by the device",
        [JFA_ERROR_BUSY] = "still in use",
        [JFA_ERROR_DEVICE] = "device failure",
        [JFA_ERROR_LAUNCH] = "kernel failure",
    };
    return (unsigned)status < JFA_STATUS_COUNT ? TEXTS[status] : "unknown status";
}

static const struct {
    const char *name;
    int bytes;
} DTYPES[JFA_DTYPE_COUNT] = {
    [JFA_F32] = {"f32", 4},   [JFA_F16] = {"f16", 2},   [JFA_BF16] = {"bf16", 2}, [JFA_E4M3] = {"e4m3", 1},
    [JFA_E5M2] = {"e5m2", 1}, [JFA_E8M0] = {"e8m0", 1}, [JFA_I8] = {"i8", 1},     [JFA_U8] = {"u8", 1},
    [JFA_I32] = {"i32", 4},   [JFA_U32] = {"u32", 4},   [JFA_I64] = {"i64", 8},
};

const char *jfa_dtype_name(jfa_dtype dtype) {
    return (unsigned)dtype < JFA_DTYPE_COUNT ? DTYPES[dtype].name : "?";
}

int jfa_dtype_bytes(jfa_dtype dtype) {
    return (unsigned)dtype < JFA_DTYPE_COUNT ? DTYPES[dtype].bytes : 0;
}

const char *jfa_version(void) {
    return JFA_VERSION;
}
