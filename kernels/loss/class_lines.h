// Lines of logits along their classes, with operands that have one number for each line. The host (src/ops/loss/cross_entropy.metal.ts) merges the
// other axes.

#ifndef ORCHARD_LOSS_CLASS_LINES_H
#define ORCHARD_LOSS_CLASS_LINES_H

#define CLASS_LINES_MAX_RANK 8
#define CLASS_LINES_OPERANDS 5

struct ClassLines {
    long shape[CLASS_LINES_MAX_RANK];                          // of the other axes, outermost first
    long strides[CLASS_LINES_OPERANDS][CLASS_LINES_MAX_RANK];  // of each operand, in elements
    long start[CLASS_LINES_OPERANDS];                          // of the first line, from where the operand is bound
    long rank;
    long lines;
    long classes;
    long along;      // from one class to the next: of the logits
    long along_out;  // and of their gradient
    long ignored;    // the target that counts for nothing
    long chunk;      // classes that a threadgroup takes
    float smoothing;
};

// Where a line begins in each operand.
inline void class_line_places(constant ClassLines &p, ulong line, thread long (&places)[CLASS_LINES_OPERANDS]) {
    for (int operand = 0; operand < CLASS_LINES_OPERANDS; operand += 1) {
        places[operand] = p.start[operand];
    }
    ulong rest = line;
    for (long axis = p.rank - 1; axis >= 0; axis -= 1) {
        ulong size = ulong(p.shape[axis]);
        long index = long(axis == 0 ? rest : rest % size);
        rest /= size;
        for (int operand = 0; operand < CLASS_LINES_OPERANDS; operand += 1) {
            places[operand] += index * p.strides[operand][axis];
        }
    }
}

#endif
