// MetalKit has only the names of the texture loader here: Linux has none of the image decoders that it uses.
@_exported import Metal
@_exported import simd

/// Rejects every texture with an error that says to decode the image and use `replace(region:…)`.
public class MTKTextureLoader {
    public let device: any MTLDevice

    public struct Option: RawRepresentable, Hashable, Sendable {
        public let rawValue: String

        public init(rawValue: String) { self.rawValue = rawValue }

        public static let allocateMipmaps = Option(rawValue: "allocateMipmaps")
        public static let generateMipmaps = Option(rawValue: "generateMipmaps")
        public static let SRGB = Option(rawValue: "SRGB")
        public static let textureUsage = Option(rawValue: "textureUsage")
        public static let textureCPUCacheMode = Option(rawValue: "textureCPUCacheMode")
        public static let textureStorageMode = Option(rawValue: "textureStorageMode")
        public static let origin = Option(rawValue: "origin")
    }

    public struct Origin: RawRepresentable, Hashable, Sendable {
        public let rawValue: String

        public init(rawValue: String) { self.rawValue = rawValue }

        public static let topLeft = Origin(rawValue: "topLeft")
        public static let bottomLeft = Origin(rawValue: "bottomLeft")
        public static let flippedVertically = Origin(rawValue: "flippedVertically")
    }

    public struct Refusal: LocalizedError {
        public var errorDescription: String? {
            "MTKTextureLoader is not here: decode the image yourself and fill a texture with replace(region:…)."
        }
    }

    public init(device: any MTLDevice) { self.device = device }

    public func newTexture(URL: URL, options: [Option: Any]? = nil) throws -> any MTLTexture { throw Refusal() }
    public func newTexture(data: Data, options: [Option: Any]? = nil) throws -> any MTLTexture { throw Refusal() }
    public func newTexture(name: String, scaleFactor: Double, bundle: Bundle?, options: [Option: Any]? = nil) throws
        -> any MTLTexture
    {
        throw Refusal()
    }
}
