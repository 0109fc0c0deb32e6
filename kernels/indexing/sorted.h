// Sums and products over indices that were sorted: where one begins among them, and what is put together.

#ifndef ORCHARD_INDEXING_SORTED_H
#define ORCHARD_INDEXING_SORTED_H

// A sum with a second number for what each addition loses (Neumaier 1974), so that the error does not grow with the
// number of terms.
struct FloatSum {
    float sum = 0;
    float lost = 0;

    void add(float value) {
        float total = sum + value;
        lost += fabs(sum) >= fabs(value) ? (sum - total) + value : (value - total) + sum;
        sum = total;
    }
    // Of a sum that is infinite or NaN what is lost has no meaning.
    float result() const { return isfinite(lost) ? sum + lost : sum; }
};

// A product with a second number for what each multiplication loses, which `fma` gives exactly (Dekker 1971).
struct FloatProduct {
    float product = 1;
    float lost = 0;

    void add(float value) {
        float total = product * value;
        lost = fma(product, value, -total) + lost * value;
        product = total;
    }
    // Of a product that is infinite or NaN what is lost has no meaning.
    float result() const { return isfinite(lost) ? product + lost : product; }
};

// The first of `length` sorted keys that is at least `key`.
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
