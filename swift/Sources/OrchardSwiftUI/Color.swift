// This SwiftUI has only colors, which compute packages pass to kernels. As with Darwin, the compiler resolves `SwiftUI`
// to this module only in modules that import it outside of `#if`.
@_exported import CoreGraphics

/// The environment that colors depend on: always the light appearance.
public struct EnvironmentValues: Sendable {
    public init() {}
}

/// A color by its components in sRGB.
public struct Color: Hashable, Sendable {
    public enum RGBColorSpace: Hashable, Sendable {
        case sRGB, sRGBLinear, displayP3
    }

    private let components: SIMD4<Double>

    /// Display P3 is treated as sRGB.
    public init(
        _ space: RGBColorSpace = .sRGB, red: Double, green: Double, blue: Double, opacity: Double = 1
    ) {
        let color = [red, green, blue].map { space == .sRGBLinear ? encoded($0) : $0 }
        components = SIMD4(color[0], color[1], color[2], opacity)
    }

    public init(_ space: RGBColorSpace = .sRGB, white: Double, opacity: Double = 1) {
        self.init(space, red: white, green: white, blue: white, opacity: opacity)
    }

    public init(hue: Double, saturation: Double, brightness: Double, opacity: Double = 1) {
        func part(_ shift: Double) -> Double {
            let place = (shift + hue * 6).truncatingRemainder(dividingBy: 6)
            return brightness * (1 - saturation * max(0, min(place, 4 - place, 1)))
        }
        self.init(red: part(5), green: part(3), blue: part(1), opacity: opacity)
    }

    public init(cgColor: CGColor) {
        let color = cgColor.converted(
            to: CGColorSpace(name: CGColorSpace.sRGB)!, intent: .defaultIntent, options: nil)!.components!
        self.init(
            red: Double(color[0]), green: Double(color[1]), blue: Double(color[2]), opacity: Double(color[3]))
    }
    public init(_ cgColor: CGColor) { self.init(cgColor: cgColor) }

    private init(_ red: Int, _ green: Int, _ blue: Int) {
        self.init(red: Double(red) / 255, green: Double(green) / 255, blue: Double(blue) / 255)
    }

    public static let clear = Color(white: 0, opacity: 0)
    public static let black = Color(white: 0)
    public static let white = Color(white: 1)
    public static let gray = Color(142, 142, 147)
    public static let red = Color(255, 59, 48)
    public static let orange = Color(255, 149, 0)
    public static let yellow = Color(255, 204, 0)
    public static let green = Color(52, 199, 89)
    public static let mint = Color(0, 199, 190)
    public static let teal = Color(48, 176, 199)
    public static let cyan = Color(50, 173, 230)
    public static let blue = Color(0, 122, 255)
    public static let indigo = Color(88, 86, 214)
    public static let purple = Color(175, 82, 222)
    public static let pink = Color(255, 45, 85)
    public static let brown = Color(162, 132, 94)

    public func opacity(_ opacity: Double) -> Color {
        Color(red: components.x, green: components.y, blue: components.z, opacity: components.w * opacity)
    }

    public var cgColor: CGColor? { resolve(in: EnvironmentValues()).cgColor }

    public func resolve(in environment: EnvironmentValues) -> Resolved {
        Resolved(
            red: Float(components.x), green: Float(components.y), blue: Float(components.z),
            opacity: Float(components.w))
    }

    /// The components of a color in sRGB and, with the prefix `linear`, in linear sRGB.
    public struct Resolved: Hashable, Sendable {
        public var red, green, blue, opacity: Float

        public init(
            colorSpace: RGBColorSpace = .sRGB, red: Float, green: Float, blue: Float, opacity: Float = 1
        ) {
            let color = [red, green, blue].map { colorSpace == .sRGBLinear ? Float(encoded(Double($0))) : $0 }
            (self.red, self.green, self.blue, self.opacity) = (color[0], color[1], color[2], opacity)
        }

        public var linearRed: Float { Float(decoded(Double(red))) }
        public var linearGreen: Float { Float(decoded(Double(green))) }
        public var linearBlue: Float { Float(decoded(Double(blue))) }

        public var cgColor: CGColor {
            CGColor(srgbRed: CGFloat(red), green: CGFloat(green), blue: CGFloat(blue), alpha: CGFloat(opacity))
        }
    }
}
