// vDSP's filters of dense matrices by rows: for float, and for double if the name ends in D. As vDSP.h defines them,
// each element is the sum of the products of the filter with the elements around it, and a border of half the filter's
// size is 0.

public typealias SquareFilter<T> =
    @Sendable (UnsafePointer<T>, vDSP_Length, vDSP_Length, UnsafePointer<T>, UnsafeMutablePointer<T>) -> Void
public typealias ImageFilter<T> =
    @Sendable (
        UnsafePointer<T>, vDSP_Length, vDSP_Length, UnsafePointer<T>, UnsafeMutablePointer<T>, vDSP_Length, vDSP_Length
    ) -> Void

private func filter<T: FloatingPoint>() -> ImageFilter<T> {
    { a, rows, columns, kernel, c, kernelRows, kernelColumns in
        let (rows, columns, p, q) = (Int(rows), Int(columns), Int(kernelRows), Int(kernelColumns))
        var result = [T](repeating: 0, count: rows * columns)
        for row in stride(from: p / 2, to: rows - p / 2, by: 1) {
            for column in stride(from: q / 2, to: columns - q / 2, by: 1) {
                var sum = T(0)
                for j in 0..<p {
                    for k in 0..<q {
                        sum += a[(row + j - p / 2) * columns + column + k - q / 2] * kernel[j * q + k]
                    }
                }
                result[row * columns + column] = sum
            }
        }
        for (i, value) in result.enumerated() { c[i] = value }
    }
}

private func square<T: FloatingPoint>(_ size: vDSP_Length) -> SquareFilter<T> {
    let filter: ImageFilter<T> = filter()
    return { a, rows, columns, kernel, c in filter(a, rows, columns, kernel, c, size, size) }
}

public let vDSP_imgfir: ImageFilter<Float> = filter()
public let vDSP_imgfirD: ImageFilter<Double> = filter()
/// Uses a filter of 3 × 3 elements.
public let vDSP_f3x3: SquareFilter<Float> = square(3)
public let vDSP_f3x3D: SquareFilter<Double> = square(3)
/// Uses a filter of 5 × 5 elements.
public let vDSP_f5x5: SquareFilter<Float> = square(5)
public let vDSP_f5x5D: SquareFilter<Double> = square(5)

extension vDSP {
    public static func convolve<T: FloatingPoint>(
        _ values: [T], rowCount: Int, columnCount: Int, withKernel kernel: [T], kernelRowCount: Int,
        kernelColumnCount: Int
    ) -> [T] {
        var result = values
        let filter: ImageFilter<T> = filter()
        filter(
            values, vDSP_Length(rowCount), vDSP_Length(columnCount), kernel, &result, vDSP_Length(kernelRowCount),
            vDSP_Length(kernelColumnCount))
        return result
    }

    public static func convolve<T: FloatingPoint>(
        _ values: [T], rowCount: Int, columnCount: Int, with3x3Kernel kernel: [T]
    ) -> [T] {
        convolve(
            values, rowCount: rowCount, columnCount: columnCount, withKernel: kernel, kernelRowCount: 3,
            kernelColumnCount: 3)
    }

    public static func convolve<T: FloatingPoint>(
        _ values: [T], rowCount: Int, columnCount: Int, with5x5Kernel kernel: [T]
    ) -> [T] {
        convolve(
            values, rowCount: rowCount, columnCount: columnCount, withKernel: kernel, kernelRowCount: 5,
            kernelColumnCount: 5)
    }
}
