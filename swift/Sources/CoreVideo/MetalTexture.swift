// Textures that share a pixel buffer's memory.
@_exported import Metal

public typealias CVMetalTexture = CVImageBuffer

/// The texture of a `CVMetalTexture`, with the pixel buffer whose memory it uses.
final class CVTexture {
    let pixels: CVPixelBuffer
    let texture: any MTLTexture

    init(pixels: CVPixelBuffer, texture: any MTLTexture) { (self.pixels, self.texture) = (pixels, texture) }
}

public let kCVReturnInvalidPixelBufferAttributes: CVReturn = -6682
public let kCVReturnPixelBufferNotMetalCompatible: CVReturn = -6684
public let kCVMetalTextureUsage: CFString = "MetalTextureUsage"
public let kCVMetalTextureStorageMode: CFString = "MetalTextureStorageMode"
public let kCVMetalTextureCacheMaximumTextureAgeKey: CFString = "MaximumTextureAge"

/// Creates textures; it does not cache them.
public final class CVMetalTextureCache: Sendable {
    let device: any MTLDevice
    fileprivate init(device: any MTLDevice) { self.device = device }
}

@discardableResult
public func CVMetalTextureCacheCreate(
    _ allocator: CFAllocator?, _ cacheAttributes: CFDictionary?, _ metalDevice: any MTLDevice,
    _ textureAttributes: CFDictionary?, _ cacheOut: UnsafeMutablePointer<CVMetalTextureCache?>
) -> CVReturn {
    cacheOut.pointee = CVMetalTextureCache(device: metalDevice)
    return kCVReturnSuccess
}

/// Creates a texture of a plane's memory. A pixel of `pixelFormat` must have the same size as a pixel of the plane.
@discardableResult
public func CVMetalTextureCacheCreateTextureFromImage(
    _ allocator: CFAllocator?, _ textureCache: CVMetalTextureCache, _ sourceImage: CVImageBuffer,
    _ textureAttributes: CFDictionary?, _ pixelFormat: MTLPixelFormat, _ width: Int, _ height: Int,
    _ planeIndex: Int, _ textureOut: UnsafeMutablePointer<CVMetalTexture?>
) -> CVReturn {
    textureOut.pointee = nil
    guard sourceImage.planes.indices.contains(planeIndex), sourceImage.texture == nil else {
        return kCVReturnInvalidArgument
    }
    let plane = sourceImage.planes[planeIndex]
    guard width > 0, height > 0, width <= plane.width, height <= plane.height else { return kCVReturnInvalidSize }
    guard bytesPerPixel(of: pixelFormat) == plane.bytesPerPixel else { return kCVReturnInvalidPixelFormat }
    guard plane.length % pageSize == 0, UInt(bitPattern: sourceImage.memory) % UInt(pageSize) == 0 else {
        return kCVReturnPixelBufferNotMetalCompatible
    }
    let descriptor = MTLTextureDescriptor.texture2DDescriptor(
        pixelFormat: pixelFormat, width: width, height: height, mipmapped: false)
    descriptor.storageMode = .shared
    descriptor.usage = (textureAttributes?[kCVMetalTextureUsage] as? UInt).map(MTLTextureUsage.init) ?? .shaderRead
    let buffer = textureCache.device.makeBuffer(
        bytesNoCopy: sourceImage.memory + plane.start, length: plane.length, options: .storageModeShared,
        deallocator: nil)
    guard let texture = buffer?.makeTexture(descriptor: descriptor, offset: 0, bytesPerRow: plane.bytesPerRow) else {
        return kCVReturnAllocationFailed
    }
    textureOut.pointee = CVBuffer(texture: CVTexture(pixels: sourceImage, texture: texture))
    return kCVReturnSuccess
}

private func bytesPerPixel(of format: MTLPixelFormat) -> Int? {
    switch format {
    case .r8Unorm, .r8Snorm, .r8Uint, .r8Sint: return 1
    case .r16Float, .r16Unorm, .r16Snorm, .r16Uint, .r16Sint, .rg8Unorm, .rg8Snorm, .rg8Uint, .rg8Sint: return 2
    case .bgra8Unorm, .rgba8Unorm, .rgba8Uint, .rgba8Sint, .rgba8Snorm, .r32Float, .r32Uint, .r32Sint, .rg16Float,
        .rg16Unorm, .rg16Uint, .rg16Sint, .rg16Snorm:
        return 4
    case .rgba16Float, .rgba16Unorm, .rgba16Uint, .rgba16Sint, .rgba16Snorm, .rg32Float, .rg32Uint, .rg32Sint: return 8
    case .rgba32Float, .rgba32Uint, .rgba32Sint: return 16
    default: return nil
    }
}

/// Returns nil for a pixel buffer that is not a texture.
public func CVMetalTextureGetTexture(_ image: CVMetalTexture) -> (any MTLTexture)? { image.texture?.texture }

/// Always false: the first row is the top one.
public func CVMetalTextureIsFlipped(_ image: CVMetalTexture) -> Bool { false }

/// Stores the corners of the whole image.
public func CVMetalTextureGetCleanTexCoords(
    _ image: CVMetalTexture, _ lowerLeft: UnsafeMutablePointer<Float>, _ lowerRight: UnsafeMutablePointer<Float>,
    _ upperRight: UnsafeMutablePointer<Float>, _ upperLeft: UnsafeMutablePointer<Float>
) {
    for (corner, x, y) in [(lowerLeft, 0, 1), (lowerRight, 1, 1), (upperRight, 1, 0), (upperLeft, 0, 0)] {
        (corner[0], corner[1]) = (Float(x), Float(y))
    }
}

public func CVMetalTextureCacheFlush(_ textureCache: CVMetalTextureCache, _ options: CVOptionFlags) {}

public func CVMetalTextureGetTypeID() -> CFTypeID { 1 }
public func CVMetalTextureCacheGetTypeID() -> CFTypeID { 2 }
