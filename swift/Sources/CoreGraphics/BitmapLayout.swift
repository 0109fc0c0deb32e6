// The layout of pixels in memory.

public enum CGImageAlphaInfo: UInt32, Sendable {
    case none, premultipliedLast, premultipliedFirst, last, first, noneSkipLast, noneSkipFirst, alphaOnly
}

public enum CGImageByteOrderInfo: UInt32, Sendable {
    case orderMask = 0x7000
    case orderDefault = 0
    case order16Little = 0x1000
    case order32Little = 0x2000
    case order16Big = 0x3000
    case order32Big = 0x4000
}

public struct CGBitmapInfo: OptionSet, Hashable, Sendable {
    public let rawValue: UInt32
    public init(rawValue: UInt32) { self.rawValue = rawValue }

    public init(alpha: CGImageAlphaInfo, byteOrder: CGImageByteOrderInfo = .orderDefault) {
        rawValue = alpha.rawValue | byteOrder.rawValue
    }

    public static let alphaInfoMask = CGBitmapInfo(rawValue: 0x1F)
    public static let floatInfoMask = CGBitmapInfo(rawValue: 0xF00)
    public static let floatComponents = CGBitmapInfo(rawValue: 0x100)
    public static let byteOrderMask = CGBitmapInfo(rawValue: 0x7000)
    public static let byteOrderDefault: CGBitmapInfo = []
    public static let byteOrder16Little = CGBitmapInfo(rawValue: 0x1000)
    public static let byteOrder32Little = CGBitmapInfo(rawValue: 0x2000)
    public static let byteOrder16Big = CGBitmapInfo(rawValue: 0x3000)
    public static let byteOrder32Big = CGBitmapInfo(rawValue: 0x4000)

    public var alpha: CGImageAlphaInfo { CGImageAlphaInfo(rawValue: rawValue & 0x1F) ?? .none }
    public var byteOrder: CGImageByteOrderInfo { CGImageByteOrderInfo(rawValue: rawValue & 0x7000) ?? .orderDefault }
}

/// The position and the type of each component of a pixel: an integer of 8 or 16 bits, or a float of 16 or 32 bits.
struct BitmapLayout {
    private enum Component { case byte, short, half, float }

    let pixelBytes: Int
    /// The slots of the color components and of alpha within a pixel.
    private let colors: [Int]
    private let alphaSlot: Int?
    private let isPremultiplied: Bool
    private let component: Component
    private let isSwapped: Bool
    /// Whether each group of four bytes is reversed, as in a little-endian integer.
    private let isReversed: Bool

    /// Returns nil for a combination that is not supported.
    init?(bitsPerComponent: Int, bitsPerPixel: Int, space: CGColorSpace?, info: CGBitmapInfo) {
        let isFloat = info.contains(.floatComponents)
        switch (bitsPerComponent, isFloat) {
        case (8, false): component = .byte
        case (16, false): component = .short
        case (16, true): component = .half
        case (32, true): component = .float
        default: return nil
        }
        let alpha = info.alpha, count = space?.numberOfComponents ?? (alpha == .alphaOnly ? 0 : 3)
        switch alpha {
        case .none: (colors, alphaSlot) = (Array(0..<count), nil)
        case .premultipliedLast, .last: (colors, alphaSlot) = (Array(0..<count), count)
        case .noneSkipLast: (colors, alphaSlot) = (Array(0..<count), nil)
        case .premultipliedFirst, .first: (colors, alphaSlot) = (Array(1...count), 0)
        case .noneSkipFirst: (colors, alphaSlot) = (Array(1...count), nil)
        case .alphaOnly: (colors, alphaSlot) = ([], 0)
        }
        isPremultiplied = alpha == .premultipliedLast || alpha == .premultipliedFirst
        let slots = alpha == .none ? count : alpha == .alphaOnly ? 1 : count + 1
        pixelBytes = slots * bitsPerComponent / 8
        guard pixelBytes * 8 == bitsPerPixel, slots > 0 else { return nil }
        let order = info.byteOrder, isLittle = order == .order16Little || order == .order32Little
        isReversed = component == .byte && order == .order32Little && slots == 4
        // Floats for which no byte order is given use the machine's.
        isSwapped = component != .byte && !isLittle && !(isFloat && order == .orderDefault)
    }

    private func load(_ pixel: UnsafeRawPointer, _ slot: Int) -> Float {
        switch component {
        case .byte: return Float(pixel.load(fromByteOffset: isReversed ? 3 - slot : slot, as: UInt8.self)) / 255
        case .short: return Float(bits(pixel, 2 * slot, UInt16.self)) / 65535
        case .half: return Float(Float16(bitPattern: bits(pixel, 2 * slot, UInt16.self)))
        case .float: return Float(bitPattern: bits(pixel, 4 * slot, UInt32.self))
        }
    }

    private func store(_ value: Float, _ pixel: UnsafeMutableRawPointer, _ slot: Int) {
        let limited = min(max(value, 0), 1)
        switch component {
        case .byte:
            let byte = UInt8((limited * 255).rounded())
            pixel.storeBytes(of: byte, toByteOffset: isReversed ? 3 - slot : slot, as: UInt8.self)
        case .short: put(UInt16((limited * 65535).rounded()), pixel, 2 * slot)
        case .half: put(Float16(value).bitPattern, pixel, 2 * slot)
        case .float: put(value.bitPattern, pixel, 4 * slot)
        }
    }

    private func bits<T: FixedWidthInteger & BitwiseCopyable>(_ pixel: UnsafeRawPointer, _ at: Int, _: T.Type) -> T {
        let value = pixel.loadUnaligned(fromByteOffset: at, as: T.self)
        return isSwapped ? value.byteSwapped : value
    }

    private func put<T: FixedWidthInteger & BitwiseCopyable>(_ value: T, _ pixel: UnsafeMutableRawPointer, _ at: Int) {
        pixel.storeBytes(of: isSwapped ? value.byteSwapped : value, toByteOffset: at, as: T.self)
    }

    /// Returns red, green and blue, multiplied by alpha, and alpha. A mask is white.
    func read(_ pixel: UnsafeRawPointer) -> SIMD4<Float> {
        let alpha = alphaSlot.map { load(pixel, $0) } ?? 1
        let c = colors.map { load(pixel, $0) }
        let scale = isPremultiplied ? 1 : alpha
        switch c.count {
        case 0: return SIMD4(repeating: alpha)
        case 1: return SIMD4(c[0] * scale, c[0] * scale, c[0] * scale, alpha)
        default: return SIMD4(c[0] * scale, c[1] * scale, c[2] * scale, alpha)
        }
    }

    /// Stores what `read` returns.
    func write(_ color: SIMD4<Float>, to pixel: UnsafeMutableRawPointer) {
        if let alphaSlot { store(color.w, pixel, alphaSlot) }
        let scale = isPremultiplied || alphaSlot == nil || color.w == 0 ? 1 : 1 / color.w
        if colors.count == 1 {
            store(luminance(color) * scale, pixel, colors[0])
        } else {
            for (index, slot) in colors.enumerated() { store(color[index] * scale, pixel, slot) }
        }
    }
}
