// This MetalKit has only the texture loader.
import CoreGraphics
@_exported import Metal
@_exported import simd

/// Makes textures from images in memory and from PNG files.
public class MTKTextureLoader {
    public typealias Callback = ((any MTLTexture)?, (any Swift.Error)?) -> Void
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
        public static let cubeLayout = Option(rawValue: "cubeLayout")
        public static let origin = Option(rawValue: "origin")
    }

    public struct Origin: RawRepresentable, Hashable, Sendable {
        public let rawValue: String

        public init(rawValue: String) { self.rawValue = rawValue }

        public static let topLeft = Origin(rawValue: "topLeft")
        public static let bottomLeft = Origin(rawValue: "bottomLeft")
        public static let flippedVertically = Origin(rawValue: "flippedVertically")
    }

    public struct Error: LocalizedError {
        public let reason: String
        public var errorDescription: String? { "MTKTextureLoader: \(reason)" }
    }

    public init(device: any MTLDevice) { self.device = device }

    /// Makes a texture with 8 bits per component: `rgba8Unorm_srgb`, or `r8Unorm_srgb` for a gray image without alpha.
    /// With `SRGB` false, the format is linear. Colors are multiplied by alpha. `cubeLayout` and `generateMipmaps` are
    /// not supported.
    public func newTexture(cgImage: CGImage, options: [Option: Any]? = nil) throws -> any MTLTexture {
        let options = options ?? [:]
        if options[.cubeLayout] != nil { throw Error(reason: "cubeLayout is not supported; copy each face.") }
        if Self.number(options[.generateMipmaps]) == 1 {
            throw Error(reason: "generateMipmaps is not supported; use allocateMipmaps and write the levels.")
        }
        let isGray = cgImage.colorSpace?.model == .monochrome && cgImage.alphaInfo == .none
        let descriptor = Self.descriptor(of: cgImage, isGray: isGray, options)
        guard let texture = device.makeTexture(descriptor: descriptor) else {
            throw Error(reason: "the device has no texture of \(cgImage.width) × \(cgImage.height) pixels.")
        }
        texture.label = "MTKTextureLoader"
        let pixels = try Self.bitmap(of: cgImage, isGray: isGray, isFlipped: Self.isFlipped(options))
        try fill(texture, with: pixels)
        return texture
    }

    private static func descriptor(
        of image: CGImage, isGray: Bool, _ options: [Option: Any]
    ) -> MTLTextureDescriptor {
        let hasCurve = number(options[.SRGB]) != 0
        let format: MTLPixelFormat =
            isGray ? (hasCurve ? .r8Unorm_srgb : .r8Unorm) : (hasCurve ? .rgba8Unorm_srgb : .rgba8Unorm)
        let hasMipmaps = number(options[.allocateMipmaps]) == 1
        let descriptor = MTLTextureDescriptor.texture2DDescriptor(
            pixelFormat: format, width: image.width, height: image.height, mipmapped: hasMipmaps)
        descriptor.usage = number(options[.textureUsage]).map { MTLTextureUsage(rawValue: UInt($0)) } ?? .shaderRead
        if let mode = number(options[.textureStorageMode]).flatMap({ MTLStorageMode(rawValue: UInt($0)) }) {
            descriptor.storageMode = mode
        }
        return descriptor
    }

    /// Options are numbers and Booleans, as NSNumber or Swift's types.
    private static func number(_ value: Any?) -> Int? {
        switch value {
        case let flag as Bool: return flag ? 1 : 0
        case let number as NSNumber: return number.intValue
        case let number as any BinaryInteger: return Int(number)
        default: return nil
        }
    }

    private static func isFlipped(_ options: [Option: Any]) -> Bool {
        guard let origin = options[.origin] else { return false }
        let name = (origin as? Origin)?.rawValue ?? origin as? String
        return name == Origin.bottomLeft.rawValue || name == Origin.flippedVertically.rawValue
    }

    private static func bitmap(of image: CGImage, isGray: Bool, isFlipped: Bool) throws -> CGContext {
        let context = CGContext(
            data: nil, width: image.width, height: image.height, bitsPerComponent: 8,
            bytesPerRow: image.width * (isGray ? 1 : 4),
            space: isGray ? CGColorSpaceCreateDeviceGray() : CGColorSpaceCreateDeviceRGB(),
            bitmapInfo: (isGray ? CGImageAlphaInfo.none : .premultipliedLast).rawValue)
        guard let context else { throw Error(reason: "the image has no pixels.") }
        context.setBlendMode(.copy)
        if isFlipped {
            context.translateBy(x: 0, y: CGFloat(image.height))
            context.scaleBy(x: 1, y: -1)
        }
        context.draw(image, in: CGRect(x: 0, y: 0, width: image.width, height: image.height))
        return context
    }

    /// The host can't write a private texture, so a copy fills it.
    private func fill(_ texture: any MTLTexture, with pixels: CGContext) throws {
        let region = MTLRegionMake2D(0, 0, pixels.width, pixels.height)
        if texture.storageMode != .private {
            texture.replace(region: region, mipmapLevel: 0, withBytes: pixels.data!, bytesPerRow: pixels.bytesPerRow)
            return
        }
        let length = pixels.bytesPerRow * pixels.height
        guard let buffer = device.makeBuffer(bytes: pixels.data!, length: length, options: .storageModeShared) else {
            throw Error(reason: "the device has no memory for a copy of \(length) bytes.")
        }
        try blit {
            $0.copy(
                from: buffer, sourceOffset: 0, sourceBytesPerRow: pixels.bytesPerRow, sourceBytesPerImage: length,
                sourceSize: region.size, to: texture, destinationSlice: 0, destinationLevel: 0,
                destinationOrigin: region.origin)
        }
    }

    private func blit(_ encode: (any MTLBlitCommandEncoder) -> Void) throws {
        guard let buffer = device.makeCommandQueue()?.makeCommandBuffer(), let encoder = buffer.makeBlitCommandEncoder()
        else { throw Error(reason: "the device has no command buffer.") }
        encode(encoder)
        encoder.endEncoding()
        buffer.commit()
        buffer.waitUntilCompleted()
        if let error = buffer.error { throw error }
    }

    /// Makes a texture from the bytes of a PNG file.
    public func newTexture(data: Data, options: [Option: Any]? = nil) throws -> any MTLTexture {
        let image: CGImage
        do { image = try readPng(data) } catch { throw Error(reason: error.localizedDescription) }
        return try newTexture(cgImage: image, options: options)
    }

    public func newTexture(URL: URL, options: [Option: Any]? = nil) throws -> any MTLTexture {
        try newTexture(data: Data(contentsOf: URL), options: options)
    }

    /// Makes a texture from the bundle's resource `name.png`. Asset catalogs are not supported.
    public func newTexture(
        name: String, scaleFactor: Double, bundle: Bundle?, options: [Option: Any]? = nil
    ) throws -> any MTLTexture {
        guard let url = (bundle ?? .main).url(forResource: name, withExtension: "png") else {
            throw Error(reason: "the bundle has no resource \(name).png.")
        }
        return try newTexture(URL: url, options: options)
    }

    public func newTextures(
        URLs: [URL], options: [Option: Any]? = nil, error: AutoreleasingUnsafeMutablePointer<NSError?>?
    ) -> [any MTLTexture] {
        URLs.compactMap { url in
            do { return try newTexture(URL: url, options: options) } catch let problem {
                error?.pointee = problem as NSError
                return nil
            }
        }
    }

    // MARK: asynchronous forms, which finish before they return

    public func newTexture(cgImage: CGImage, options: [Option: Any]? = nil, completionHandler: Callback) {
        complete(completionHandler) { try newTexture(cgImage: cgImage, options: options) }
    }
    public func newTexture(data: Data, options: [Option: Any]? = nil, completionHandler: Callback) {
        complete(completionHandler) { try newTexture(data: data, options: options) }
    }
    public func newTexture(URL: URL, options: [Option: Any]? = nil, completionHandler: Callback) {
        complete(completionHandler) { try newTexture(URL: URL, options: options) }
    }
    public func newTexture(
        name: String, scaleFactor: Double, bundle: Bundle?, options: [Option: Any]? = nil, completionHandler: Callback
    ) {
        complete(completionHandler) {
            try newTexture(name: name, scaleFactor: scaleFactor, bundle: bundle, options: options)
        }
    }

    private func complete(_ handler: Callback, _ make: () throws -> any MTLTexture) {
        do { handler(try make(), nil) } catch { handler(nil, error) }
    }

    public func newTexture(cgImage: CGImage, options: [Option: Any]? = nil) async throws -> any MTLTexture {
        try immediate { try newTexture(cgImage: cgImage, options: options) }
    }
    public func newTexture(data: Data, options: [Option: Any]? = nil) async throws -> any MTLTexture {
        try immediate { try newTexture(data: data, options: options) }
    }
    public func newTexture(URL: URL, options: [Option: Any]? = nil) async throws -> any MTLTexture {
        try immediate { try newTexture(URL: URL, options: options) }
    }

    /// Makes the compiler choose the synchronous form.
    private func immediate(_ make: () throws -> any MTLTexture) rethrows -> any MTLTexture { try make() }
}
