// Sums over windows of images, as in native/cpu/convolution/windows.h. For each position p of a grid:
//
//   result[row, p] = Σ over channels c and places k of weight[row, c, k] · source[c, (p · step + shift(k)) / divisor]
//
// A place is an element of the kernel. The source is 0 out of bounds and between its elements. The host
// (src/ops/convolution/windows.metal.ts) and the kernels share the struct. source [batch, groups · channels, …source],
// weight and result [batch, groups · rows, …result] are contiguous.

#ifndef ORCHARD_CONVOLUTION_WINDOWS_H
#define ORCHARD_CONVOLUTION_WINDOWS_H

// - channels: summed channels per group
// - rows: rows of the result per group
// - grid, source, step, divisor: for each axis, the positions, the elements of the source, and the step and divisor
//   that map a position to the source
// - places, shift, shift_step: the number of places, the shift of the first one, and the difference of the shifts of
//   adjacent places
// - kernel_size, first_place, place_step: the length of the kernel, and the first place in it
// - result, result_first, result_step: where the positions are in the result: its length along each axis, the first
//   position and the step
// - weight_group, weight_row, weight_channel: strides of the weight
// - splits, split_length: the weight's gradient is summed in parts of `split_length` positions, which are stored
//   contiguously
#include "generated/windows.h"

inline long volume(constant long (&sizes)[3]) { return sizes[0] * sizes[1] * sizes[2]; }

// An element's position is the sum of two WindowParts: one for a step of the sum (a channel and a place), and one for a
// position. Each part has an offset in the other factor (the weight for a step, the result's gradient for a position),
// an offset in the source, and the indices along the source's axes.
struct WindowPart {
    long other;
    long source;
    int at[3];
    long element;  // offset in the source if there is no divisor: source + at[0] · … + at[1] · … + at[2]
};

inline long element_of(constant Windows &windows, thread const WindowPart &part) {
    return part.source + (part.at[0] * windows.source[1] + part.at[1]) * windows.source[2] + part.at[2];
}

inline WindowPart step_part(constant Windows &windows, uint step) {
    const uint places = uint(volume(windows.places));
    const uint channel = step / places;
    uint place = step % places;
    WindowPart part;
    long element = 0;
    long size = 1;
    for (int axis = 2; axis >= 0; axis -= 1) {
        const uint count = uint(windows.places[axis]);
        const int axis_place = int(place % count);
        place /= count;
        part.at[axis] = int(windows.shift[axis]) + axis_place * int(windows.shift_step[axis]);
        element += (windows.first_place[axis] + axis_place * windows.place_step[axis]) * size;
        size *= windows.kernel_size[axis];
    }
    part.other = channel * windows.weight_channel + element;
    part.source = channel * volume(windows.source);
    part.element = element_of(windows, part);
    return part;
}

// Returns the part of a position, counted over all images.
inline WindowPart position_part(constant Windows &windows, uint position) {
    const uint grid = uint(volume(windows.grid));
    const long picture = position / grid;
    uint remainder = position % grid;
    WindowPart part;
    part.other = picture * windows.groups * windows.rows * grid + remainder;
    part.source = picture * windows.groups * windows.channels * volume(windows.source);
    for (int axis = 2; axis >= 0; axis -= 1) {
        const uint size = uint(windows.grid[axis]);
        part.at[axis] = int(remainder % size) * int(windows.step[axis]);
        remainder /= size;
    }
    part.element = element_of(windows, part);
    return part;
}

// Returns whether any divisor is not 1: then only every `divisor`-th shifted position is an element of the source.
inline bool has_divisor(constant Windows &windows) {
    return windows.divisor[0] * windows.divisor[1] * windows.divisor[2] != 1;
}

// Returns whether all steps read in bounds at a position: along each axis, the first and the last place do.
inline bool is_inside(constant Windows &windows, thread const WindowPart &position) {
    bool inside = !has_divisor(windows);
    for (int axis = 0; axis < 3; axis += 1) {
        const long first = position.at[axis] + windows.shift[axis];
        const long last = first + (windows.places[axis] - 1) * windows.shift_step[axis];
        inside = inside && min(first, last) >= 0 && max(first, last) < windows.source[axis];
    }
    return inside;
}

// Returns the element of a group's source that a step reads at a position.
template <typename In>
inline float window_element(
    constant Windows &windows,
    device const In *source,
    thread const WindowPart &step,
    thread const WindowPart &position) {
    long offset = 0;
    for (int axis = 0; axis < 3; axis += 1) {
        int at = step.at[axis] + position.at[axis];
        const int divisor = int(windows.divisor[axis]);
        if (at < 0 || (divisor != 1 && at % divisor != 0)) {
            return 0.0f;
        }
        at /= divisor;
        if (at >= int(windows.source[axis])) {
            return 0.0f;
        }
        offset = offset * windows.source[axis] + at;
    }
    return float(source[step.source + position.source + offset]);
}

// Returns the offset in the result of a position and row.
inline long result_offset(constant Windows &windows, uint group, long row, uint position) {
    const uint grid = uint(volume(windows.grid));
    const long picture = position / grid;
    uint remainder = position % grid;
    long offset = 0;
    long size = 1;
    for (int axis = 2; axis >= 0; axis -= 1) {
        const uint count = uint(windows.grid[axis]);
        offset += (windows.result_first[axis] + long(remainder % count) * windows.result_step[axis]) * size;
        remainder /= count;
        size *= windows.result[axis];
    }
    return ((picture * windows.groups + group) * windows.rows + row) * size + offset;
}

#endif
