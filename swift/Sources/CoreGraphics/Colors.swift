@_exported import OrchardCoreFoundation

public enum CGColorSpaceModel: Int32, Sendable {
    case unknown = -1
    case monochrome, rgb, cmyk, lab, deviceN, indexed, pattern, XYZ
}

public enum CGColorRenderingIntent: Int32, Sendable {
    case defaultIntent, absoluteColorimetric, relativeColorimetric, perceptual, saturation
}

/// A color space of gray or RGB components. It is linear if its name says so; otherwise it has the curve of sRGB.
/// Neither primaries nor pixels of drawn images are converted.
public final class CGColorSpace: Hashable, Sendable {
    public let name: CFString?
    public let model: CGColorSpaceModel

    init(name: CFString?, model: CGColorSpaceModel) { (self.name, self.model) = (name, model) }

    public static let sRGB: CFString = "kCGColorSpaceSRGB"
    public static let linearSRGB: CFString = "kCGColorSpaceLinearSRGB"
    public static let extendedSRGB: CFString = "kCGColorSpaceExtendedSRGB"
    public static let extendedLinearSRGB: CFString = "kCGColorSpaceExtendedLinearSRGB"
    public static let displayP3: CFString = "kCGColorSpaceDisplayP3"
    public static let extendedDisplayP3: CFString = "kCGColorSpaceExtendedDisplayP3"
    public static let extendedLinearDisplayP3: CFString = "kCGColorSpaceExtendedLinearDisplayP3"
    public static let adobeRGB1998: CFString = "kCGColorSpaceAdobeRGB1998"
    public static let genericRGBLinear: CFString = "kCGColorSpaceGenericRGBLinear"
    public static let itur_709: CFString = "kCGColorSpaceITUR_709"
    public static let itur_2020: CFString = "kCGColorSpaceITUR_2020"
    public static let genericGrayGamma2_2: CFString = "kCGColorSpaceGenericGrayGamma2_2"
    public static let linearGray: CFString = "kCGColorSpaceLinearGray"
    public static let extendedGray: CFString = "kCGColorSpaceExtendedGray"
    public static let extendedLinearGray: CFString = "kCGColorSpaceExtendedLinearGray"

    private static let grays: Set<CFString> = [genericGrayGamma2_2, linearGray, extendedGray, extendedLinearGray]
    private static let colors: Set<CFString> = [
        sRGB, linearSRGB, extendedSRGB, extendedLinearSRGB, displayP3, extendedDisplayP3, extendedLinearDisplayP3,
        adobeRGB1998, genericRGBLinear, itur_709, itur_2020,
    ]

    /// Returns nil unless the name is one of the constants.
    public convenience init?(name: CFString) {
        if Self.grays.contains(name) {
            self.init(name: name, model: .monochrome)
        } else if Self.colors.contains(name) {
            self.init(name: name, model: .rgb)
        } else {
            return nil
        }
    }

    public var numberOfComponents: Int { model == .monochrome ? 1 : 3 }
    var isLinear: Bool { name?.contains("Linear") == true }
    public var supportsOutput: Bool { true }
    public var isWideGamutRGB: Bool { name?.contains("P3") == true || name == Self.itur_2020 }

    public static func == (a: CGColorSpace, b: CGColorSpace) -> Bool { a.name == b.name && a.model == b.model }
    public func hash(into hasher: inout Hasher) { hasher.combine(name) }
}

public func CGColorSpaceCreateDeviceRGB() -> CGColorSpace { CGColorSpace(name: nil, model: .rgb) }
public func CGColorSpaceCreateDeviceGray() -> CGColorSpace { CGColorSpace(name: nil, model: .monochrome) }

/// A color in a color space: its components, then alpha.
public final class CGColor: Hashable, Sendable {
    private let values: [CGFloat]
    public let colorSpace: CGColorSpace?

    public init?(colorSpace space: CGColorSpace, components: UnsafePointer<CGFloat>) {
        values = Array(UnsafeBufferPointer(start: components, count: space.numberOfComponents + 1))
        colorSpace = space
    }
    private init(_ space: CGColorSpace, _ values: [CGFloat]) { (colorSpace, self.values) = (space, values) }

    public convenience init(red: CGFloat, green: CGFloat, blue: CGFloat, alpha: CGFloat) {
        self.init(CGColorSpaceCreateDeviceRGB(), [red, green, blue, alpha])
    }
    public convenience init(srgbRed red: CGFloat, green: CGFloat, blue: CGFloat, alpha: CGFloat) {
        self.init(CGColorSpace(name: CGColorSpace.sRGB, model: .rgb), [red, green, blue, alpha])
    }
    public convenience init(gray: CGFloat, alpha: CGFloat) {
        self.init(CGColorSpaceCreateDeviceGray(), [gray, alpha])
    }
    public convenience init(genericGrayGamma2_2Gray gray: CGFloat, alpha: CGFloat) {
        self.init(CGColorSpace(name: CGColorSpace.genericGrayGamma2_2, model: .monochrome), [gray, alpha])
    }

    public static let black = CGColor(gray: 0, alpha: 1)
    public static let white = CGColor(gray: 1, alpha: 1)
    public static let clear = CGColor(gray: 0, alpha: 0)

    public var components: [CGFloat]? { values }
    public var numberOfComponents: Int { values.count }
    public var alpha: CGFloat { values[values.count - 1] }

    public func copy(alpha: CGFloat) -> CGColor? { CGColor(colorSpace!, values.dropLast() + [alpha]) }

    /// Returns the color in another space. A gray becomes RGB with equal components; RGB becomes gray by its luminance
    /// (Rec. 709).
    public func converted(to space: CGColorSpace, intent: CGColorRenderingIntent, options: CFDictionary?) -> CGColor? {
        let isLinear = colorSpace?.isLinear == true
        var components = values.dropLast().map { isLinear == space.isLinear ? Double($0) : curve(Double($0), isLinear) }
        if components.count == 1, space.model == .rgb { components = [Double](repeating: components[0], count: 3) }
        if components.count == 3, space.model == .monochrome {
            components = [0.2126 * components[0] + 0.7152 * components[1] + 0.0722 * components[2]]
        }
        return CGColor(space, components.map { CGFloat($0) } + [alpha])
    }

    /// Red, green and blue, not multiplied by alpha, and alpha.
    var rgba: SIMD4<Float> {
        let v = values.map { Float($0) }
        return v.count == 2 ? SIMD4(v[0], v[0], v[0], v[1]) : SIMD4(v[0], v[1], v[2], v[3])
    }

    public static func == (a: CGColor, b: CGColor) -> Bool { a.values == b.values && a.colorSpace == b.colorSpace }
    public func hash(into hasher: inout Hasher) { hasher.combine(values) }
}

private func curve(_ x: Double, _ isLinear: Bool) -> Double { isLinear ? encoded(x) : decoded(x) }

/// The curve of sRGB (IEC 61966-2-1), and its inverse.
package func encoded(_ x: Double) -> Double { x <= 0.0031308 ? 12.92 * x : 1.055 * pow(x, 1 / 2.4) - 0.055 }
package func decoded(_ x: Double) -> Double { x <= 0.04045 ? x / 12.92 : pow((x + 0.055) / 1.055, 2.4) }

func luminance(_ color: SIMD4<Float>) -> Float { 0.2126 * color.x + 0.7152 * color.y + 0.0722 * color.z }
