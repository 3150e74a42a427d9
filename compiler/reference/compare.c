// compare.c: the error of a kernel's output beside that of the rounded computation.
//
// The rounded computation is a sample: its roundings may happen to cancel, most of all where there are few
// elements, or many are the same. So the bounds have a floor that holds for any computation. A result is
// rounded to the output's type at least once, by up to half an ulp of the element, h_i. The floor of the
// maximum is max h_i; that of the norm is the same (one element is off) or, if it is more,
// sqrt(sum h_i^2 / 3): errors spread evenly over +-h have a mean square of h^2 / 3.
//
// Half an ulp of the result says nothing of a result that is a difference: x - y with x = y (1 + tiny) is off
// by ulps of x. What a kernel may be off by there follows from its family's math, and stands in the family's
// reference as within(x, e) with the derivation beside it: e is added to the rounded computation's error,
// whose double is the bound.
#include "compiler/reference/number.h"
#include "compiler/reference/reference.h"

typedef struct {
    double maximum, squares;
} Error;

// |value - exact|: 0 between equal infinities and between an infinity and what rounds to it; infinite for
// NaN.
static double distance(Elem elem, double value, double exact) {
    if (value == exact || (isnan(value) && isnan(exact)) ||
        (isinf(value) && value == number_to_elem(elem, exact)))
        return 0;
    return isfinite(value) && isfinite(exact) ? fabs(value - exact) : INFINITY;
}

static bool add_error(Error *error, double distance) {
    bool is_worse = distance > error->maximum;
    error->maximum = is_worse ? distance : error->maximum;
    error->squares += distance * distance;
    return is_worse;
}

static double relative(double absolute, double norm) {
    return absolute == 0 ? 0 : norm == 0 ? INFINITY : absolute / norm;
}

// Offset in the kernel's tensor of a row-major index.
static int64_t offset_of(const ReferenceTensor *tensor, int64_t index) {
    int64_t offset = 0;
    for (int d = tensor->rank - 1; d >= 0; d--) {
        offset += index % tensor->extent[d] * tensor->stride[d];
        index /= tensor->extent[d];
    }
    return offset;
}

ReferenceComparison reference_compare(const ReferenceTensor *kernel, const ReferenceOutput *exact,
                                      const ReferenceOutput *rounded) {
    ReferenceComparison result = {.worst = -1};
    Error kernel_error = {0, 0}, rounded_error = {0, 0};
    double largest = 0, squares = 0, half_ulps = 0; // of |exact|: its squares, and those of half its ulps
    for (int64_t i = 0; i < exact->count; i++) {
        if (!exact->written[i])
            continue;
        double right = exact->values[i];
        double value = number_read(exact->elem, kernel->is_double, kernel->data, offset_of(kernel, i));
        if (add_error(&kernel_error, distance(exact->elem, value, right)) || result.worst < 0) {
            result.worst = i;
            result.worst_kernel = value;
            result.worst_exact = right;
        }
        double slack = rounded->slack ? rounded->slack[i] : 0;
        add_error(&rounded_error, distance(exact->elem, rounded->values[i], right) + slack);
        if (isfinite(right)) {
            largest = fabs(right) > largest ? fabs(right) : largest;
            squares += right * right;
            double half_ulp = number_half_ulp(exact->elem, right);
            half_ulps += half_ulp * half_ulp;
        }
        result.compared++;
    }
    double norm = sqrt(squares), half_ulp = number_half_ulp(exact->elem, largest);
    result.kernel_maximum = kernel_error.maximum;
    result.kernel_relative = relative(sqrt(kernel_error.squares), norm);
    result.rounded_maximum = rounded_error.maximum;
    result.rounded_relative = relative(sqrt(rounded_error.squares), norm);
    result.maximum_bound = 2 * fmax(result.rounded_maximum, half_ulp);
    result.relative_bound =
        2 * fmax(result.rounded_relative, relative(fmax(half_ulp, sqrt(half_ulps / 3)), norm));
    result.passes = isfinite(result.kernel_maximum) && result.kernel_maximum <= result.maximum_bound &&
                    result.kernel_relative <= result.relative_bound;
    return result;
}
