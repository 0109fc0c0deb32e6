// Lines along one axis of up to three operands of one shape. The host (src/ops/scan/lines.ts) merges the other axes.

#ifndef ORCHARD_SCAN_LINES_H
#define ORCHARD_SCAN_LINES_H

#define LINES_MAX_RANK 8

struct LineParameters {
    long shape[LINES_MAX_RANK];       // of the other axes, outermost first
    long strides[3][LINES_MAX_RANK];  // of each operand, in elements
    long along[3];                    // from one element of a line to the next; negative where it is walked backwards
    long start[3];                    // of the first line, from where the operand is bound
    long rank;
    long length;
    long lines;
};

// Where a line begins in each operand.
inline void line_places(constant LineParameters &p, ulong line, thread long (&places)[3]) {
    for (int operand = 0; operand < 3; operand += 1) {
        places[operand] = p.start[operand];
    }
    ulong rest = line;
    for (long axis = p.rank - 1; axis >= 0; axis -= 1) {
        ulong size = ulong(p.shape[axis]);
        long index = long(axis == 0 ? rest : rest % size);
        rest /= size;
        for (int operand = 0; operand < 3; operand += 1) {
            places[operand] += index * p.strides[operand][axis];
        }
    }
}

#endif
