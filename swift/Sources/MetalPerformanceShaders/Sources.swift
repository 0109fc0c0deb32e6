/// The kernels' sources. `Left`, `Right`, `Source`, `Bias` and `Result` are `float` or `half`.
let kernelSources: [String: String] = [
    "multiply": """
    struct Product {
        uint rows, columns, interior, leftRow, rightRow, resultRow;
        ulong leftMatrix, rightMatrix, resultMatrix;
        float alpha, beta;
        uint transposeLeft, transposeRight;
    };

    kernel void multiply(
        device const Left* left [[buffer(0)]], device const Right* right [[buffer(1)]],
        device Result* result [[buffer(2)]], constant Product& product [[buffer(3)]],
        uint3 position [[thread_position_in_grid]])
    {
        ulong column = position.x, row = position.y;
        left += position.z * product.leftMatrix;
        right += position.z * product.rightMatrix;
        device Result* element = result + position.z * product.resultMatrix + row * product.resultRow + column;
        float sum = 0;
        for (ulong k = 0; k < product.interior; ++k) {
            float a = left[product.transposeLeft ? k * product.leftRow + row : row * product.leftRow + k];
            float b = right[product.transposeRight ? column * product.rightRow + k : k * product.rightRow + column];
            sum = fma(a, b, sum);
        }
        sum *= product.alpha;
        if (product.beta != 0) sum = fma(product.beta, float(*element), sum);
        *element = Result(sum);
    }
    """,
    "copy_matrix": """
    kernel void copy_matrix(
        device const Source* source [[buffer(0)]], device Result* result [[buffer(1)]],
        constant uint4& strides [[buffer(2)]], uint2 position [[thread_position_in_grid]])
    {
        ulong column = position.x, row = position.y;
        result[row * strides[2] + column * strides[3]] = Result(source[row * strides[0] + column * strides[1]]);
    }
    """,
    "softmax": """
    struct Rows {
        uint columns, sourceRow, resultRow, isLogarithm;
        ulong sourceMatrix, resultMatrix;
    };

    kernel void softmax(
        device const Source* source [[buffer(0)]], device Result* result [[buffer(1)]],
        constant Rows& rows [[buffer(2)]], uint3 position [[thread_position_in_grid]])
    {
        source += position.z * rows.sourceMatrix + position.x * ulong(rows.sourceRow);
        result += position.z * rows.resultMatrix + position.x * ulong(rows.resultRow);
        float largest = -INFINITY;
        for (uint i = 0; i < rows.columns; ++i) largest = max(largest, float(source[i]));
        float sum = 0;
        for (uint i = 0; i < rows.columns; ++i) sum += precise::exp(float(source[i]) - largest);
        float logarithm = precise::log(sum);
        for (uint i = 0; i < rows.columns; ++i) {
            float x = float(source[i]) - largest;
            result[i] = Result(rows.isLogarithm ? x - logarithm : precise::exp(x) / sum);
        }
    }
    """,
    "neuron": """
    struct Neurons {
        uint sourceRow, resultRow, type, hasBias;
        ulong sourceMatrix, resultMatrix;
        float alpha, a, b, c;
    };

    // The formulas of MPSCNNNeuronType.
    float activation(constant Neurons& neurons, float x)
    {
        float a = neurons.a, b = neurons.b, c = neurons.c;
        switch (neurons.type) {
        case 1: return x >= 0 ? x : a * x;
        case 2: return a * x + b;
        case 3: return 1 / (1 + precise::exp(-x));
        case 4: return clamp(a * x + b, 0.0f, 1.0f);
        case 5: return a * precise::tanh(b * x);
        case 6: return fabs(x);
        case 7: return a * precise::log(1 + precise::exp(b * x));
        case 8: return x / (1 + fabs(x));
        case 9: return x >= 0 ? x : a * (precise::exp(x) - 1);
        case 11: return min(x >= 0 ? x : a * x, b);
        case 12: return precise::pow(a * x + b, c);
        case 13: return c == -1 ? precise::exp(a * x + b) : precise::pow(c, a * x + b);
        case 14: return c == -1 ? precise::log(a * x + b) : precise::log(a * x + b) / precise::log(c);
        default: return x;
        }
    }

    kernel void neuron(
        device const Source* source [[buffer(0)]], device const Bias* bias [[buffer(1)]],
        device Result* result [[buffer(2)]], constant Neurons& neurons [[buffer(3)]],
        uint3 position [[thread_position_in_grid]])
    {
        float x = source[position.z * neurons.sourceMatrix + position.y * ulong(neurons.sourceRow) + position.x];
        x *= neurons.alpha;
        if (neurons.hasBias) x += float(bias[position.x]);
        result[position.z * neurons.resultMatrix + position.y * ulong(neurons.resultRow) + position.x]
            = Result(activation(neurons, x));
    }
    """,
    "cholesky": """
    struct Factor {
        uint order, sourceRow, resultRow, isLower, hasStatus;
        ulong sourceMatrix, resultMatrix;
    };

    ulong place(constant Factor& factor, uint stride, ulong i, ulong j)
    {
        return factor.isLower ? i * stride + j : j * stride + i;
    }

    kernel void cholesky(
        device const Source* source [[buffer(0)]], device Result* result [[buffer(1)]],
        device int* status [[buffer(2)]], constant Factor& factor [[buffer(3)]],
        uint3 position [[thread_position_in_grid]])
    {
        source += position.x * factor.sourceMatrix;
        result += position.x * factor.resultMatrix;
        for (ulong j = 0; j < factor.order; ++j) {
            for (ulong i = j; i < factor.order; ++i) {
                float sum = source[place(factor, factor.sourceRow, i, j)];
                for (ulong k = 0; k < j; ++k)
                    sum = fma(-float(result[place(factor, factor.resultRow, i, k)]),
                        float(result[place(factor, factor.resultRow, j, k)]), sum);
                if (i == j && !(sum > 0)) {
                    if (factor.hasStatus) status[position.x] = -3;
                    return;
                }
                float diagonal = i == j ? 1 : float(result[place(factor, factor.resultRow, j, j)]);
                result[place(factor, factor.resultRow, i, j)] = Result(i == j ? sqrt(sum) : sum / diagonal);
            }
        }
        if (factor.hasStatus) status[position.x] = 0;
    }
    """,
    "lu": """
    struct Factor {
        uint rows, columns, sourceRow, resultRow, pivotMatrix, hasStatus;
        ulong sourceMatrix, resultMatrix;
    };

    // Doolittle's method, with the largest pivot of each column.
    kernel void lu(
        device const Source* source [[buffer(0)]], device Result* result [[buffer(1)]],
        device uint* pivots [[buffer(2)]], device int* status [[buffer(3)]],
        constant Factor& factor [[buffer(4)]], uint3 position [[thread_position_in_grid]])
    {
        source += position.x * factor.sourceMatrix;
        result += position.x * factor.resultMatrix;
        pivots += position.x * ulong(factor.pivotMatrix);
        int outcome = 0;
        ulong row = factor.resultRow;
        for (ulong i = 0; i < factor.rows; ++i)
            for (ulong j = 0; j < factor.columns; ++j)
                result[i * row + j] = Result(source[i * factor.sourceRow + j]);
        for (ulong k = 0; k < min(factor.rows, factor.columns); ++k) {
            ulong pivot = k;
            for (ulong i = k + 1; i < factor.rows; ++i)
                if (fabs(float(result[i * row + k])) > fabs(float(result[pivot * row + k]))) pivot = i;
            pivots[k] = uint(pivot);
            for (ulong j = 0; j < factor.columns && pivot != k; ++j) {
                Result kept = result[k * row + j];
                result[k * row + j] = result[pivot * row + j];
                result[pivot * row + j] = kept;
            }
            if (float(result[k * row + k]) == 0) { outcome = -2; continue; }
            for (ulong i = k + 1; i < factor.rows; ++i) {
                float scale = float(result[i * row + k]) / float(result[k * row + k]);
                result[i * row + k] = Result(scale);
                for (ulong j = k + 1; j < factor.columns; ++j) {
                    float above = result[k * row + j];
                    result[i * row + j] = Result(fma(-scale, above, float(result[i * row + j])));
                }
            }
        }
        if (factor.hasStatus) status[position.x] = outcome;
    }
    """,
    "solve": """
    struct Solve {
        uint order, matrixRow, rightRow, rightColumn, solutionRow, solutionColumn;
        uint isUpper, isTransposed, isUnit, pivotMatrix, pivots;
        float alpha;
        ulong matrixMatrix, rightMatrix, solutionMatrix;
    };

    // Substitution for one column of the solution. `pivots` is 1 to exchange rows first, 2 to exchange them last.
    kernel void solve(
        device const Source* matrix [[buffer(0)]], device const Right* right [[buffer(1)]],
        device const uint* pivots [[buffer(2)]], device Result* solution [[buffer(3)]],
        constant Solve& given [[buffer(4)]], uint3 position [[thread_position_in_grid]])
    {
        matrix += position.z * given.matrixMatrix;
        right += position.z * given.rightMatrix + position.x * ulong(given.rightColumn);
        solution += position.z * given.solutionMatrix + position.x * ulong(given.solutionColumn);
        pivots += position.z * ulong(given.pivotMatrix);
        ulong n = given.order, row = given.solutionRow;
        for (ulong i = 0; i < n; ++i) solution[i * row] = Result(given.alpha * float(right[i * given.rightRow]));
        for (ulong i = 0; given.pivots == 1 && i < n; ++i) {
            Result kept = solution[i * row];
            solution[i * row] = solution[pivots[i] * row];
            solution[pivots[i] * row] = kept;
        }
        bool isForward = given.isUpper == given.isTransposed;
        for (ulong step = 0; step < n; ++step) {
            ulong i = isForward ? step : n - 1 - step;
            float sum = solution[i * row];
            for (ulong known = 0; known < step; ++known) {
                ulong j = isForward ? known : n - 1 - known;
                float a = matrix[given.isTransposed ? j * given.matrixRow + i : i * given.matrixRow + j];
                sum = fma(-a, float(solution[j * row]), sum);
            }
            if (!given.isUnit) sum /= float(matrix[i * given.matrixRow + i]);
            solution[i * row] = Result(sum);
        }
        for (ulong i = n; given.pivots == 2 && i-- > 0;) {
            Result kept = solution[i * row];
            solution[i * row] = solution[pivots[i] * row];
            solution[pivots[i] * row] = kept;
        }
    }
    """,
    "topK": """
    struct TopK {
        uint columns, count, indexOffset, sourceRow, indexRow, valueRow;
        ulong sourceMatrix, indexMatrix, valueMatrix;
    };

    // Selects the next largest value of each row: values are ordered by value, then by index.
    kernel void topK(
        device const Source* source [[buffer(0)]], device uint* indices [[buffer(1)]],
        device Result* values [[buffer(2)]], constant TopK& top [[buffer(3)]],
        uint3 position [[thread_position_in_grid]])
    {
        source += position.z * top.sourceMatrix + position.x * ulong(top.sourceRow);
        indices += position.z * top.indexMatrix + position.x * ulong(top.indexRow);
        values += position.z * top.valueMatrix + position.x * ulong(top.valueRow);
        uint last = 0;
        for (uint k = 0; k < top.count; ++k) {
            uint best = top.columns;
            for (uint i = 0; i < top.columns; ++i) {
                float x = source[i];
                if (k > 0 && !(x < float(source[last]) || (x == float(source[last]) && i > last))) continue;
                if (best == top.columns || x > float(source[best])) best = i;
            }
            if (best == top.columns) return;
            indices[k] = best + top.indexOffset;
            values[k] = Result(float(source[best]));
            last = best;
        }
    }
    """,
]
