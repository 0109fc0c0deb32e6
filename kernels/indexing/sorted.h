// Compensated sums and products, and bisection, for kernels over sorted indices.

#ifndef ORCHARD_INDEXING_SORTED_H
#define ORCHARD_INDEXING_SORTED_H

// A sum with a second number for rounding errors (Neumaier 1974), so that the error does not grow with the number of
// terms.
struct FloatSum {
    float sum = 0;
    float lost = 0;

    void add(float value) {
        float total = sum + value;
        lost += fabs(sum) >= fabs(value) ? (sum - total) + value : (value - total) + sum;
        sum = total;
    }
    // If the sum is infinite or NaN, `lost` has no meaning.
    float result() const { return isfinite(lost) ? sum + lost : sum; }
};

// A product with a second number for rounding errors, which `fma` gives exactly (Dekker 1971).
struct FloatProduct {
    float product = 1;
    float lost = 0;

    void add(float value) {
        float total = product * value;
        lost = fma(product, value, -total) + lost * value;
        product = total;
    }
    // If the product is infinite or NaN, `lost` has no meaning.
    float result() const { return isfinite(lost) ? product + lost : product; }
};

// Returns the position of the first of `length` sorted keys that is at least `key`.
template <typename Index>
inline long lower_bound(device const Index *keys, long first, long stride, long length, long key) {
    long low = 0;
    long high = length;
    while (low < high) {
        long middle = (low + high) / 2;
        if (long(keys[first + middle * stride]) < key) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

#endif
