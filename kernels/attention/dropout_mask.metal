// mask[b, h, i, j] = whether dropout keeps the pair of query i and key j (src/ops/attention/problem.ts). It depends on
// the call's key, the head, the sequence, and the pair's position in the sequence. Pairs from different sequences are
// false.
//
// Tiling: one thread per pair, which computes its block of Philox. Grid: (keys, queries, B · H).

#include <metal_stdlib>
using namespace metal;

#include "common/philox.h"

// - keep_scale: does not affect the mask
// - sequences: number of packed sequences; 0 if each batch is one sequence
// - start: of the mask
#include "generated/dropout_mask.h"

// Query i and key j, counted within the sequence that they share; index < 0 if they share none.
struct PlacedPair {
    int index;
    uint i;
    uint j;
};

inline PlacedPair placed_pair(constant DropoutMask &a, device const int *sequences, uint batch, uint query, uint key) {
    if (a.sequences == 0) {
        return {int(batch), query, key};
    }
    for (int index = 0; index < int(a.sequences); index += 1) {
        const uint i = query - uint(sequences[index * 4]);
        const uint j = key - uint(sequences[index * 4 + 2]);
        if (i < uint(sequences[index * 4 + 1]) && j < uint(sequences[index * 4 + 3])) {
            return {index, i, j};
        }
    }
    return {-1, 0, 0};
}

// sequences  [[buffer(0)]]  [count, 4]
// mask       [[buffer(1)]]  [B, H, M, N]
kernel void dropout_mask(
    device const int *sequences [[buffer(0)]],
    device bool *mask [[buffer(1)]],
    constant DropoutMask &a [[buffer(2)]],
    uint3 position [[thread_position_in_grid]]) {
    const uint head = position.z % uint(a.heads);
    const uint batch = position.z / uint(a.heads);
    const PlacedPair pair = placed_pair(a, sequences, batch, position.y, position.x);
    const uint4 words = philox(uint4(pair.j / 2, pair.i / 2, head, uint(pair.index)), uint2(a.key[0], a.key[1]));
    const bool kept = pair.index >= 0 && words[pair.i % 2 * 2 + pair.j % 2] >= a.threshold;
    mask[a.start + batch * a.strides[0] + head * a.strides[1] + position.y * a.strides[2] + position.x * a.strides[3]] =
        kept;
}
