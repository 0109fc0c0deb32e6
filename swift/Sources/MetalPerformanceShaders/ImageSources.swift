import Metal

extension MPSKernel {
    func imagePipeline(_ function: String) -> any MTLComputePipelineState {
        Pipelines.shared.pipeline(function, source: imageKernels, owner: "\(Self.self)", on: device)
    }
}

/// The kernels of image filters. The position of a source pixel is `offset` plus the result pixel's distance from
/// `origin`.
private let imageKernels = """
    struct Filter {
        int2 offset, origin, window;
        uint edge, isMonochrome;
        float4 numbers;
    };
    typedef texture2d<float, access::read> Source;
    typedef texture2d<float, access::write> Result;

    // The index of a mirrored position; with the edge, the pixel at the edge is repeated.
    int mirrored(int i, int size, bool repeatsEdge)
    {
        int period = repeatsEdge ? 2 * size : max(2 * size - 2, 1);
        int place = ((i % period) + period) % period;
        return place < size ? place : (repeatsEdge ? period - 1 - place : period - place);
    }

    float4 pixel(Source source, int2 at, uint edge)
    {
        int2 size = int2(source.get_width(), source.get_height());
        if (edge == 0 && (any(at < 0) || any(at >= size))) return float4(0);
        if (edge == 2 || edge == 3) at = int2(mirrored(at.x, size.x, edge == 3), mirrored(at.y, size.y, edge == 3));
        return source.read(uint2(clamp(at, 0, size - 1)));
    }

    kernel void convolve(
        Source source [[texture(0)]], Result result [[texture(2)]], constant Filter& filter [[buffer(0)]],
        device const float* weights [[buffer(1)]], uint2 position [[thread_position_in_grid]])
    {
        int2 at = int2(position) + filter.offset - filter.window / 2;
        float4 sum = 0;
        for (int j = 0; j < filter.window.y; ++j)
            for (int i = 0; i < filter.window.x; ++i)
                sum += weights[j * filter.window.x + i] * pixel(source, at + int2(i, j), filter.edge);
        result.write(sum + filter.numbers.x, position + uint2(filter.origin));
    }

    kernel void convolveRows(
        Source source [[texture(0)]], Result result [[texture(2)]], constant Filter& filter [[buffer(0)]],
        device const float* weights [[buffer(1)]], uint2 position [[thread_position_in_grid]])
    {
        int2 at = int2(position) + filter.offset - filter.window / 2;
        float4 sum = 0;
        for (int i = 0; i < filter.window.x; ++i) sum += weights[i] * pixel(source, at + int2(i, 0), filter.edge);
        result.write(sum, position);
    }

    // The source is the result of convolveRows, which begins half a window above.
    kernel void convolveColumns(
        Source source [[texture(0)]], Result result [[texture(2)]], constant Filter& filter [[buffer(0)]],
        device const float* weights [[buffer(1)]], uint2 position [[thread_position_in_grid]])
    {
        float4 sum = 0;
        for (int j = 0; j < filter.window.y; ++j) sum += weights[j] * source.read(position + uint2(0, j));
        result.write(sum, position + uint2(filter.origin));
    }

    kernel void sobel(
        Source source [[texture(0)]], Result result [[texture(2)]], constant Filter& filter [[buffer(0)]],
        device const float* gray [[buffer(1)]], uint2 position [[thread_position_in_grid]])
    {
        int2 at = int2(position) + filter.offset;
        float4 across = 0, down = 0;
        for (int i = -1; i <= 1; ++i) {
            float weight = i == 0 ? 2 : 1;
            uint edge = filter.edge;
            float4 right = pixel(source, at + int2(1, i), edge), left = pixel(source, at + int2(-1, i), edge);
            float4 below = pixel(source, at + int2(i, 1), edge), above = pixel(source, at + int2(i, -1), edge);
            across += weight * (right - left);
            down += weight * (below - above);
        }
        if (filter.isMonochrome && filter.numbers.x == 0) {
            float3 transform = float3(gray[0], gray[1], gray[2]);
            across = dot(across.rgb, transform);
            down = dot(down.rgb, transform);
        }
        float4 size = precise::sqrt(across * across + down * down);
        result.write(filter.isMonochrome ? size : float4(size.rgb, 1), position + uint2(filter.origin));
    }

    kernel void threshold(
        Source source [[texture(0)]], Result result [[texture(2)]], constant Filter& filter [[buffer(0)]],
        device const float* gray [[buffer(1)]], uint2 position [[thread_position_in_grid]])
    {
        float4 color = pixel(source, int2(position) + filter.offset, filter.edge);
        float x = filter.numbers.w != 0 ? color.r : dot(color.rgb, float3(gray[0], gray[1], gray[2]));
        bool exceeds = x > filter.numbers.x;
        float value = 0;
        switch (int(filter.numbers.z)) {
        case 0: value = exceeds ? filter.numbers.y : 0; break;
        case 1: value = exceeds ? 0 : filter.numbers.y; break;
        case 2: value = exceeds ? filter.numbers.x : x; break;
        case 3: value = exceeds ? x : 0; break;
        default: value = exceeds ? 0 : x;
        }
        result.write(float4(value, value, value, 1), position + uint2(filter.origin));
    }

    // The median of each channel: the value that half of the other values precede. Equal values are ordered by
    // position.
    kernel void median(
        Source source [[texture(0)]], Result result [[texture(2)]], constant Filter& filter [[buffer(0)]],
        uint2 position [[thread_position_in_grid]])
    {
        int2 at = int2(position) + filter.offset - filter.window / 2;
        int count = filter.window.x * filter.window.y;
        float4 middle = 0;
        for (int i = 0; i < count; ++i) {
            float4 x = pixel(source, at + int2(i % filter.window.x, i / filter.window.x), filter.edge);
            int4 before = 0;
            for (int j = 0; j < count; ++j) {
                float4 y = pixel(source, at + int2(j % filter.window.x, j / filter.window.x), filter.edge);
                before += int4(y < x) + (j < i ? int4(y == x) : int4(0));
            }
            middle = select(middle, x, before == count / 2);
        }
        result.write(middle, position + uint2(filter.origin));
    }

    kernel void extreme(
        Source source [[texture(0)]], Result result [[texture(2)]], constant Filter& filter [[buffer(0)]],
        device const float* probe [[buffer(1)]], uint2 position [[thread_position_in_grid]])
    {
        int2 at = int2(position) + filter.offset - filter.window / 2;
        float sign = filter.numbers.x;
        float4 most = -INFINITY;
        for (int j = 0; j < filter.window.y; ++j)
            for (int i = 0; i < filter.window.x; ++i)
                most = max(most, sign * pixel(source, at + int2(i, j), filter.edge) - probe[j * filter.window.x + i]);
        result.write(sign * most, position + uint2(filter.origin));
    }

    kernel void transpose(
        Source source [[texture(0)]], Result result [[texture(2)]], constant Filter& filter [[buffer(0)]],
        uint2 position [[thread_position_in_grid]])
    {
        result.write(pixel(source, int2(position.yx) + filter.offset, filter.edge), position + uint2(filter.origin));
    }

    kernel void scaleLinear(
        Source source [[texture(0)]], Result result [[texture(2)]], constant Filter& filter [[buffer(0)]],
        uint2 position [[thread_position_in_grid]])
    {
        uint2 place = position + uint2(filter.origin);
        float2 at = (float2(place) + 0.5f - filter.numbers.zw) / filter.numbers.xy - 0.5f;
        int2 first = int2(floor(at));
        float2 part = at - floor(at);
        float4 above = mix(pixel(source, first, 1), pixel(source, first + int2(1, 0), 1), part.x);
        float4 below = mix(pixel(source, first + int2(0, 1), 1), pixel(source, first + int2(1, 1), 1), part.x);
        result.write(mix(above, below, part.y), place);
    }

    float lanczos(float x)
    {
        if (x == 0) return 1;
        if (fabs(x) >= 3) return 0;
        float angle = M_PI_F * x;
        return 3 * precise::sin(angle) * precise::sin(angle / 3) / (angle * angle);
    }

    kernel void scaleLanczos(
        Source source [[texture(0)]], Result result [[texture(2)]], constant Filter& filter [[buffer(0)]],
        uint2 position [[thread_position_in_grid]])
    {
        uint2 place = position + uint2(filter.origin);
        float2 at = (float2(place) + 0.5f - filter.numbers.zw) / filter.numbers.xy - 0.5f;
        float2 stretch = max(1 / filter.numbers.xy, 1);
        int2 low = int2(ceil(at - 3 * stretch)), high = int2(floor(at + 3 * stretch));
        float4 sum = 0;
        float total = 0;
        for (int y = low.y; y <= high.y; ++y)
            for (int x = low.x; x <= high.x; ++x) {
                float weight = lanczos((x - at.x) / stretch.x) * lanczos((y - at.y) / stretch.y);
                sum += weight * pixel(source, int2(x, y), 1);
                total += weight;
            }
        result.write(sum / total, place);
    }

    struct Arithmetic {
        int2 primary, secondary, origin;
        uint primaryEdge, secondaryEdge;
        float2 scales, limits;
        float bias;
        uint operation;
    };

    kernel void arithmetic(
        Source first [[texture(0)]], Source second [[texture(1)]], Result result [[texture(2)]],
        constant Arithmetic& sum [[buffer(0)]], uint2 position [[thread_position_in_grid]])
    {
        float4 a = sum.scales.x * pixel(first, int2(position) + sum.primary, sum.primaryEdge);
        float4 b = sum.scales.y * pixel(second, int2(position) + sum.secondary, sum.secondaryEdge);
        float4 value = sum.operation == 0 ? a + b : sum.operation == 1 ? a - b : sum.operation == 2 ? a * b : a / b;
        result.write(clamp(value + sum.bias, sum.limits.x, sum.limits.y), position + uint2(sum.origin));
    }

    kernel void statistics(
        Source source [[texture(0)]], Result result [[texture(2)]], constant Filter& filter [[buffer(0)]],
        device const float* region [[buffer(1)]], uint2 position [[thread_position_in_grid]])
    {
        uint2 origin = uint2(region[0], region[1]), size = uint2(region[2], region[3]);
        float count = float(size.x) * float(size.y);
        float4 low = INFINITY, high = -INFINITY, sum = 0;
        for (uint y = 0; y < size.y; ++y) {
            float4 row = 0;
            for (uint x = 0; x < size.x; ++x) {
                float4 value = source.read(origin + uint2(x, y));
                low = min(low, value);
                high = max(high, value);
                row += value;
            }
            sum += row;
        }
        float4 answer = filter.numbers.x == 2 ? (position.x == 0 ? low : high) : sum / count;
        if (filter.numbers.x == 1 && position.x == 1) {
            float4 mean = answer, squares = 0;
            for (uint y = 0; y < size.y; ++y)
                for (uint x = 0; x < size.x; ++x) {
                    float4 distance = source.read(origin + uint2(x, y)) - mean;
                    squares += distance * distance;
                }
            answer = squares / count;
        }
        result.write(answer, position + uint2(filter.origin));
    }

    struct Histogram {
        int2 origin;
        uint entries, channels;
        float4 low, high, threshold;
    };

    kernel void histogram(
        Source source [[texture(0)]], constant Histogram& histogram [[buffer(0)]],
        device atomic_uint* counts [[buffer(1)]], uint2 position [[thread_position_in_grid]])
    {
        float4 color = source.read(position + uint2(histogram.origin));
        float4 part = (color - histogram.low) / (histogram.high - histogram.low);
        for (uint channel = 0; channel < histogram.channels; ++channel) {
            if (color[channel] < histogram.threshold[channel]) continue;
            uint entry = uint(clamp(floor(part[channel] * histogram.entries), 0.0f, float(histogram.entries - 1)));
            atomic_fetch_add_explicit(counts + channel * histogram.entries + entry, 1u, memory_order_relaxed);
        }
    }
    """
