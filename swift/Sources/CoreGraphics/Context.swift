public enum CGInterpolationQuality: Int32, Sendable {
    case `default` = 0
    case none = 1
    case low = 2
    case high = 3
    case medium = 4
}

public enum CGBlendMode: Int32, Sendable {
    case normal = 0
    case copy = 17
    case clear = 16
    case sourceIn = 18
    case destinationOver = 21
    case plusLighter = 27
}

public typealias CGBitmapContextReleaseDataCallback =
    @convention(c) (UnsafeMutableRawPointer?, UnsafeMutableRawPointer?) -> Void

/// A bitmap for drawing images, rectangles and ellipses, with y upward from the bottom row. A shape covers a pixel if
/// it covers the pixel's center; edges are not smoothed. Paths and text are not supported.
public final class CGContext {
    public let width: Int
    public let height: Int
    public let bitsPerComponent: Int
    public let bitsPerPixel: Int
    public let bytesPerRow: Int
    public let colorSpace: CGColorSpace?
    public let bitmapInfo: CGBitmapInfo
    private let memory: UnsafeMutableRawPointer
    private let release: () -> Void
    private let layout: BitmapLayout

    private struct State {
        var transform = CGAffineTransform.identity
        var fill = CGColor.black
        var alpha: Float = 1
        var quality = CGInterpolationQuality.default
        var mode = CGBlendMode.normal
        /// Rectangles that limit drawing, each with the transform from the bitmap to the rectangle's coordinates.
        var clips: [(CGRect, CGAffineTransform)] = []
    }
    private var state = State()
    private var saved: [State] = []

    /// Returns nil, as on a Mac, if the layout is not supported: colors with alpha must be multiplied by it, and RGB
    /// has four components. Without `data`, the bitmap starts as zeros. If `bytesPerRow` is 0, rows have no padding.
    public convenience init?(
        data: UnsafeMutableRawPointer?, width: Int, height: Int, bitsPerComponent: Int, bytesPerRow: Int,
        space: CGColorSpace, bitmapInfo: UInt32
    ) {
        self.init(
            data: data, width: width, height: height, bitsPerComponent: bitsPerComponent, bytesPerRow: bytesPerRow,
            space: space, bitmapInfo: bitmapInfo, releaseCallback: nil, releaseInfo: nil)
    }

    public init?(
        data: UnsafeMutableRawPointer?, width: Int, height: Int, bitsPerComponent: Int, bytesPerRow: Int,
        space: CGColorSpace, bitmapInfo: UInt32, releaseCallback: CGBitmapContextReleaseDataCallback?,
        releaseInfo: UnsafeMutableRawPointer?
    ) {
        let info = CGBitmapInfo(rawValue: bitmapInfo)
        let slots = info.alpha == .alphaOnly ? 1 : space.numberOfComponents + (info.alpha == .none ? 0 : 1)
        guard width > 0, height > 0, info.alpha != .last, info.alpha != .first, slots != 3,
            let layout = BitmapLayout(
                bitsPerComponent: bitsPerComponent, bitsPerPixel: slots * bitsPerComponent, space: space, info: info),
            bytesPerRow == 0 || bytesPerRow >= width * layout.pixelBytes
        else { return nil }
        (self.width, self.height, self.bitsPerComponent, self.layout) = (width, height, bitsPerComponent, layout)
        self.bytesPerRow = bytesPerRow == 0 ? (width * layout.pixelBytes + 15) / 16 * 16 : bytesPerRow
        (bitsPerPixel, colorSpace, self.bitmapInfo) = (slots * bitsPerComponent, space, info)
        let length = self.bytesPerRow * height
        if let data {
            memory = data
            release = { releaseCallback?(releaseInfo, data) }
        } else {
            // Rounded up to whole pages of Apple silicon, so that a Metal buffer can share the memory.
            let size = (length + 16383) / 16384 * 16384
            let allocated = UnsafeMutableRawPointer.allocate(byteCount: size, alignment: 16384)
            allocated.initializeMemory(as: UInt8.self, repeating: 0, count: length)
            memory = allocated
            release = { allocated.deallocate() }
        }
    }

    deinit { release() }

    public var data: UnsafeMutableRawPointer? { memory }
    public var alphaInfo: CGImageAlphaInfo { bitmapInfo.alpha }

    /// Returns a copy of the bitmap.
    public func makeImage() -> CGImage? {
        let bytes = Data(bytes: memory, count: bytesPerRow * height)
        return CGImage(
            width: width, height: height, bitsPerComponent: bitsPerComponent, bitsPerPixel: bitsPerPixel,
            bytesPerRow: bytesPerRow, space: colorSpace!, bitmapInfo: bitmapInfo,
            provider: CGDataProvider(data: bytes)!, decode: nil, shouldInterpolate: true, intent: .defaultIntent)
    }

    public func flush() {}
    public func synchronize() {}

    // MARK: state

    public func saveGState() { saved.append(state) }
    public func restoreGState() { if let last = saved.popLast() { state = last } }

    public var ctm: CGAffineTransform { state.transform }
    public func concatenate(_ transform: CGAffineTransform) {
        state.transform = transform.concatenating(state.transform)
    }
    public func translateBy(x: CGFloat, y: CGFloat) { concatenate(CGAffineTransform(translationX: x, y: y)) }
    public func scaleBy(x: CGFloat, y: CGFloat) { concatenate(CGAffineTransform(scaleX: x, y: y)) }
    public func rotate(by angle: CGFloat) { concatenate(CGAffineTransform(rotationAngle: angle)) }

    public var interpolationQuality: CGInterpolationQuality {
        get { state.quality }
        set { state.quality = newValue }
    }
    public func setBlendMode(_ mode: CGBlendMode) { state.mode = mode }
    public func setAlpha(_ alpha: CGFloat) { state.alpha = Float(alpha) }
    public func setShouldAntialias(_ should: Bool) {}
    public func setAllowsAntialiasing(_ allows: Bool) {}
    public func clip(to rect: CGRect) { state.clips.append((rect, state.transform.inverted())) }
    public func setFillColor(_ color: CGColor) { state.fill = color }
    public func setFillColor(red: CGFloat, green: CGFloat, blue: CGFloat, alpha: CGFloat) {
        state.fill = CGColor(red: red, green: green, blue: blue, alpha: alpha)
    }
    public func setFillColor(gray: CGFloat, alpha: CGFloat) { state.fill = CGColor(gray: gray, alpha: alpha) }

    // MARK: drawing

    public func fill(_ rect: CGRect) { paint(rect, filled) { _ in true } }
    public func fill(_ rects: [CGRect]) { rects.forEach(fill) }
    public func clear(_ rect: CGRect) { paint(rect, SIMD4(), mode: .copy) { _ in true } }

    public func fillEllipse(in rect: CGRect) {
        paint(rect, filled) { point in
            let x = (point.x - rect.midX) / (rect.width / 2), y = (point.y - rect.midY) / (rect.height / 2)
            return x * x + y * y <= 1
        }
    }

    /// The fill color of shapes, multiplied by its alpha.
    private var filled: SIMD4<Float> {
        let color = state.fill.rgba
        return SIMD4(color.x * color.w, color.y * color.w, color.z * color.w, color.w)
    }

    private func paint(
        _ rect: CGRect, _ color: SIMD4<Float>, mode: CGBlendMode? = nil, _ covers: (CGPoint) -> Bool
    ) {
        let inverse = state.transform.inverted()
        eachPixel(of: rect) { x, y, center in
            let point = center.applying(inverse)
            if rect.contains(point), covers(point) { blend(color, x, y, mode ?? state.mode) }
        }
    }

    /// Draws the image with its top row at the rectangle's largest y. Between pixels it interpolates linearly, unless
    /// the quality is `none`; where it shrinks the image, it averages samples.
    public func draw(_ image: CGImage, in rect: CGRect) {
        let rect = rect.standardized
        guard rect.width > 0, rect.height > 0 else { return }
        let inverse = state.transform.inverted()
        let scale = CGSize(width: CGFloat(image.width) / rect.width, height: CGFloat(image.height) / rect.height)
        // The number of the image's pixels per pixel of the bitmap, in each direction of the bitmap.
        let stepX = max(abs(inverse.a * scale.width), abs(inverse.b * scale.height))
        let stepY = max(abs(inverse.c * scale.width), abs(inverse.d * scale.height))
        let isNearest = state.quality == .none
        let countX = isNearest ? 1 : min(max(Int(stepX.rounded(.up)), 1), 16)
        let countY = isNearest ? 1 : min(max(Int(stepY.rounded(.up)), 1), 16)
        image.withPixels { pixel in
            let sampler = Sampler(pixel: pixel, width: image.width, height: image.height, isNearest: isNearest)
            eachPixel(of: rect) { x, y, center in
                guard rect.contains(center.applying(inverse)) else { return }
                var sum = SIMD4<Float>()
                for j in 0..<countY {
                    for i in 0..<countX {
                        let offsetX = (CGFloat(i) + 0.5) / CGFloat(countX) - 0.5
                        let offsetY = (CGFloat(j) + 0.5) / CGFloat(countY) - 0.5
                        let point = CGPoint(x: center.x + offsetX, y: center.y + offsetY).applying(inverse)
                        sum += sampler.sample(
                            (point.x - rect.minX) * scale.width, (rect.maxY - point.y) * scale.height)
                    }
                }
                blend(sum / Float(countX * countY), x, y, state.mode)
            }
        }
    }

    public func draw(_ image: CGImage, in rect: CGRect, byTiling: Bool) { draw(image, in: rect) }

    /// Visits the pixels around a rectangle that no clip excludes. Passes the column, the row from the top, and the
    /// center.
    private func eachPixel(of rect: CGRect, _ body: (Int, Int, CGPoint) -> Void) {
        let corners = [
            CGPoint(x: rect.minX, y: rect.minY), CGPoint(x: rect.maxX, y: rect.minY),
            CGPoint(x: rect.minX, y: rect.maxY), CGPoint(x: rect.maxX, y: rect.maxY),
        ].map { $0.applying(state.transform) }
        func range(_ values: [CGFloat], _ limit: Int) -> Range<Int> {
            let low = min(max(values.min()!, 0), CGFloat(limit)), high = min(max(values.max()!, 0), CGFloat(limit))
            return Int(low.rounded(.down))..<max(Int(low.rounded(.down)), Int(high.rounded(.up)))
        }
        for up in range(corners.map(\.y), height) {
            for x in range(corners.map(\.x), width) {
                let center = CGPoint(x: CGFloat(x) + 0.5, y: CGFloat(up) + 0.5)
                if state.clips.allSatisfy({ $0.0.contains(center.applying($0.1)) }) { body(x, height - 1 - up, center) }
            }
        }
    }

    private func blend(_ source: SIMD4<Float>, _ x: Int, _ y: Int, _ mode: CGBlendMode) {
        let address = memory + y * bytesPerRow + x * layout.pixelBytes, source = source * state.alpha
        let old = layout.read(address)
        switch mode {
        case .normal: layout.write(source + old * (1 - source.w), to: address)
        case .copy: layout.write(source, to: address)
        case .clear: layout.write(SIMD4(), to: address)
        case .sourceIn: layout.write(source * old.w, to: address)
        case .destinationOver: layout.write(old + source * (1 - old.w), to: address)
        case .plusLighter: layout.write(pointwiseMin(source + old, SIMD4(repeating: 1)), to: address)
        }
    }
}

/// Samples an image at positions in pixels from its top left corner. Positions outside are clamped to the edge.
private struct Sampler {
    let pixel: (Int, Int) -> SIMD4<Float>
    let width: Int
    let height: Int
    let isNearest: Bool

    func sample(_ x: CGFloat, _ y: CGFloat) -> SIMD4<Float> {
        if isNearest { return at(Int(x.rounded(.down)), Int(y.rounded(.down))) }
        let left = (x - 0.5).rounded(.down), top = (y - 0.5).rounded(.down)
        let (i, j) = (Int(left), Int(top)), u = Float(x - 0.5 - left), v = Float(y - 0.5 - top)
        if u == 0, v == 0 { return at(i, j) }
        let above = at(i, j) * (1 - u) + at(i + 1, j) * u, below = at(i, j + 1) * (1 - u) + at(i + 1, j + 1) * u
        return above * (1 - v) + below * v
    }

    private func at(_ x: Int, _ y: Int) -> SIMD4<Float> { pixel(min(max(x, 0), width - 1), min(max(y, 0), height - 1)) }
}
