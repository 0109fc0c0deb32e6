public typealias CGDataProviderReleaseDataCallback =
    @convention(c) (UnsafeMutableRawPointer?, UnsafeRawPointer, Int) -> Void

/// The bytes of an image.
public final class CGDataProvider: @unchecked Sendable {
    private let bytes: Data

    public init?(data: CFData) { bytes = data }

    public init?(url: CFURL) {
        guard let data = try? Data(contentsOf: url) else { return nil }
        bytes = data
    }

    /// Uses the memory without a copy, as long as the provider exists.
    public init?(
        dataInfo info: UnsafeMutableRawPointer?, data: UnsafeRawPointer, size: Int,
        releaseData: CGDataProviderReleaseDataCallback
    ) {
        bytes = Data(
            bytesNoCopy: UnsafeMutableRawPointer(mutating: data), count: size,
            deallocator: .custom { memory, length in releaseData(info, memory, length) })
    }

    public var data: CFData? { bytes }
}

/// An image in memory. Its first row is the top one.
public final class CGImage: @unchecked Sendable {
    public let width: Int
    public let height: Int
    public let bitsPerComponent: Int
    public let bitsPerPixel: Int
    public let bytesPerRow: Int
    public let colorSpace: CGColorSpace?
    public let bitmapInfo: CGBitmapInfo
    public let dataProvider: CGDataProvider?
    public let shouldInterpolate: Bool
    public let renderingIntent: CGColorRenderingIntent
    let layout: BitmapLayout

    /// Returns nil if the layout is not supported, or if the provider has too few bytes. The components are integers of
    /// 8 or 16 bits, or floats of 16 or 32 bits; `decode` must be nil.
    public init?(
        width: Int, height: Int, bitsPerComponent: Int, bitsPerPixel: Int, bytesPerRow: Int, space: CGColorSpace,
        bitmapInfo: CGBitmapInfo, provider: CGDataProvider, decode: UnsafePointer<CGFloat>?, shouldInterpolate: Bool,
        intent: CGColorRenderingIntent
    ) {
        guard width > 0, height > 0, decode == nil, let data = provider.data,
            let layout = BitmapLayout(
                bitsPerComponent: bitsPerComponent, bitsPerPixel: bitsPerPixel, space: space, info: bitmapInfo),
            bytesPerRow >= width * layout.pixelBytes,
            data.count >= bytesPerRow * (height - 1) + width * layout.pixelBytes
        else { return nil }
        (self.width, self.height, self.bytesPerRow, self.layout) = (width, height, bytesPerRow, layout)
        (self.bitsPerComponent, self.bitsPerPixel) = (bitsPerComponent, bitsPerPixel)
        (colorSpace, self.bitmapInfo, dataProvider) = (space, bitmapInfo, provider)
        (self.shouldInterpolate, renderingIntent) = (shouldInterpolate, intent)
    }

    public var alphaInfo: CGImageAlphaInfo { bitmapInfo.alpha }
    public var byteOrderInfo: CGImageByteOrderInfo { bitmapInfo.byteOrder }
    public var isMask: Bool { false }
    public var decode: UnsafePointer<CGFloat>? { nil }

    /// Calls `body` with a function that returns the pixel in a column and a row from the top.
    func withPixels<Result>(_ body: (@escaping (Int, Int) -> SIMD4<Float>) throws -> Result) rethrows -> Result {
        try dataProvider!.data!.withUnsafeBytes { bytes in
            let start = bytes.baseAddress!
            return try body { x, y in self.layout.read(start + y * self.bytesPerRow + x * self.layout.pixelBytes) }
        }
    }

    private func with(
        _ bytes: Data, _ width: Int, _ height: Int, _ bytesPerRow: Int, _ space: CGColorSpace
    ) -> CGImage? {
        CGImage(
            width: width, height: height, bitsPerComponent: bitsPerComponent, bitsPerPixel: bitsPerPixel,
            bytesPerRow: bytesPerRow, space: space, bitmapInfo: bitmapInfo, provider: CGDataProvider(data: bytes)!,
            decode: nil, shouldInterpolate: shouldInterpolate, intent: renderingIntent)
    }

    /// Returns a copy of a part of the image, or nil if the rectangle does not intersect the image.
    public func cropping(to rect: CGRect) -> CGImage? {
        let part = rect.integral.intersection(CGRect(x: 0, y: 0, width: width, height: height))
        guard !part.isNull, part.width > 0, part.height > 0, let data = dataProvider?.data else { return nil }
        let rowBytes = Int(part.width) * layout.pixelBytes
        var bytes = Data(capacity: rowBytes * Int(part.height))
        for row in Int(part.minY)..<Int(part.maxY) {
            let start = data.startIndex + row * bytesPerRow + Int(part.minX) * layout.pixelBytes
            bytes.append(data[start..<start + rowBytes])
        }
        return with(bytes, Int(part.width), Int(part.height), rowBytes, colorSpace!)
    }

    public func copy() -> CGImage? { self }

    /// Returns an image with the same pixels and another color space of the same model.
    public func copy(colorSpace space: CGColorSpace) -> CGImage? {
        guard space.model == colorSpace?.model, let data = dataProvider?.data else { return nil }
        return with(data, width, height, bytesPerRow, space)
    }
}
