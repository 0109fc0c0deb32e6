// Sparse textures, which this device does not support.

public enum MTLSparseTextureMappingMode: UInt, Sendable {
    case map = 0
    case unmap = 1
}

public enum MTLSparseTextureRegionAlignmentMode: UInt, Sendable {
    case outward = 0
    case inward = 1
}

public enum MTLSparsePageSize: Int, Sendable {
    case size16 = 101
    case size64 = 102
    case size256 = 103
}

public class MTLResourceStatePassDescriptor: NSObject, NSCopying {
    public func copy(with zone: NSZone? = nil) -> Any { MTLResourceStatePassDescriptor() }
}

/// An optional method of an Objective-C protocol, which programs call as `method?(…)`. It maps tiles; a buffer has the
/// arguments.
public struct _IndirectTextureMapping {
    public func callAsFunction(
        _ texture: any MTLTexture, mode: MTLSparseTextureMappingMode, indirectBuffer: any MTLBuffer,
        indirectBufferOffset: Int
    ) {}
}

/// An optional method of an Objective-C protocol, which programs call as `method?(…)`. It copies the access counters of
/// tiles.
public struct _TextureAccessCounters {
    public func callAsFunction(
        _ texture: any MTLTexture, region: MTLRegion, mipLevel: Int, slice: Int, resetCounters: Bool,
        countersBuffer: any MTLBuffer, countersBufferOffset: Int
    ) {}
}

public protocol MTLResourceStateCommandEncoder: MTLCommandEncoder {
    var updateTextureMapping: _IndirectTextureMapping? { get }
    func updateFence(_ fence: any MTLFence)
    func waitForFence(_ fence: any MTLFence)
}

extension MTLBlitCommandEncoder {
    /// Always nil: the device has no sparse textures.
    public var getTextureAccessCounters: _TextureAccessCounters? { nil }
}

extension SoftwareCommandBuffer {
    func makeResourceStateCommandEncoder() -> (any MTLResourceStateCommandEncoder)? {
        note("\(SoftwareDevice.shared.name) has no sparse textures: makeResourceStateCommandEncoder gives nil")
        return nil
    }

    func resourceStateCommandEncoder(with resourceStatePassDescriptor: MTLResourceStatePassDescriptor)
        -> (any MTLResourceStateCommandEncoder)?
    { makeResourceStateCommandEncoder() }
}
