public enum MTLTextureType: UInt, Sendable {
    case type1D = 0
    case type1DArray = 1
    case type2D = 2
    case type2DArray = 3
    case type2DMultisample = 4
    case typeCube = 5
    case typeCubeArray = 6
    case type3D = 7
    case type2DMultisampleArray = 8
    case typeTextureBuffer = 9
}

public struct MTLTextureUsage: OptionSet, Sendable {
    public let rawValue: UInt

    public init(rawValue: UInt) { self.rawValue = rawValue }

    public static var unknown: MTLTextureUsage { [] }
    public static var shaderRead: MTLTextureUsage { MTLTextureUsage(rawValue: 1) }
    public static var shaderWrite: MTLTextureUsage { MTLTextureUsage(rawValue: 2) }
    public static var renderTarget: MTLTextureUsage { MTLTextureUsage(rawValue: 4) }
    public static var pixelFormatView: MTLTextureUsage { MTLTextureUsage(rawValue: 16) }
    public static var shaderAtomic: MTLTextureUsage { MTLTextureUsage(rawValue: 32) }
}

public enum MTLTextureCompressionType: Int, Sendable {
    case lossless = 0
    case lossy = 1
}

public enum MTLTextureSwizzle: UInt8, Sendable {
    case zero = 0
    case one = 1
    case red = 2
    case green = 3
    case blue = 4
    case alpha = 5
}

public struct MTLTextureSwizzleChannels: Sendable {
    public var red: MTLTextureSwizzle
    public var green: MTLTextureSwizzle
    public var blue: MTLTextureSwizzle
    public var alpha: MTLTextureSwizzle

    public init() { self.init(red: .red, green: .green, blue: .blue, alpha: .alpha) }

    public init(red: MTLTextureSwizzle, green: MTLTextureSwizzle, blue: MTLTextureSwizzle, alpha: MTLTextureSwizzle) {
        self.red = red
        self.green = green
        self.blue = blue
        self.alpha = alpha
    }
}

public class MTLTextureDescriptor: NSObject, NSCopying {
    public var textureType = MTLTextureType.type2D
    public var pixelFormat = MTLPixelFormat.rgba8Unorm
    public var width = 1
    public var height = 1
    public var depth = 1
    public var mipmapLevelCount = 1
    public var sampleCount = 1
    public var arrayLength = 1
    public var cpuCacheMode = MTLCPUCacheMode.defaultCache
    public var storageMode = MTLStorageMode.shared
    public var hazardTrackingMode = MTLHazardTrackingMode.default
    public var usage = MTLTextureUsage.shaderRead
    public var allowGPUOptimizedContents = true
    public var compressionType = MTLTextureCompressionType.lossless
    public var swizzle = MTLTextureSwizzleChannels()

    public var resourceOptions: MTLResourceOptions {
        get { MTLResourceOptions(cpuCacheMode, storageMode, hazardTrackingMode) }
        set { (cpuCacheMode, storageMode, hazardTrackingMode) = newValue.parts }
    }

    public class func texture2DDescriptor(pixelFormat: MTLPixelFormat, width: Int, height: Int, mipmapped: Bool)
        -> MTLTextureDescriptor
    {
        let descriptor = MTLTextureDescriptor()
        descriptor.pixelFormat = pixelFormat
        descriptor.width = width
        descriptor.height = height
        descriptor.mipmapLevelCount = mipmapped ? levelCount(of: max(width, height)) : 1
        return descriptor
    }

    public class func textureCubeDescriptor(pixelFormat: MTLPixelFormat, size: Int, mipmapped: Bool)
        -> MTLTextureDescriptor
    {
        let descriptor = texture2DDescriptor(pixelFormat: pixelFormat, width: size, height: size, mipmapped: mipmapped)
        descriptor.textureType = .typeCube
        return descriptor
    }

    public class func textureBufferDescriptor(
        with pixelFormat: MTLPixelFormat, width: Int, resourceOptions: MTLResourceOptions = [], usage: MTLTextureUsage
    ) -> MTLTextureDescriptor {
        let descriptor = MTLTextureDescriptor()
        descriptor.textureType = .typeTextureBuffer
        descriptor.pixelFormat = pixelFormat
        descriptor.width = width
        descriptor.resourceOptions = resourceOptions
        descriptor.usage = usage
        return descriptor
    }

    public func copy(with zone: NSZone? = nil) -> Any {
        let copy = MTLTextureDescriptor()
        copy.textureType = textureType
        copy.pixelFormat = pixelFormat
        copy.width = width
        copy.height = height
        copy.depth = depth
        copy.mipmapLevelCount = mipmapLevelCount
        copy.sampleCount = sampleCount
        copy.arrayLength = arrayLength
        copy.cpuCacheMode = cpuCacheMode
        copy.storageMode = storageMode
        copy.hazardTrackingMode = hazardTrackingMode
        copy.usage = usage
        copy.allowGPUOptimizedContents = allowGPUOptimizedContents
        copy.compressionType = compressionType
        copy.swizzle = swizzle
        return copy
    }
}

/// Returns the number of levels of a texture down to one pixel; each is half as large as the previous one.
func levelCount(of size: Int) -> Int { size <= 1 ? 1 : Int.bitWidth - size.leadingZeroBitCount }

public protocol MTLTexture: MTLResource, Sendable {
    var rootResource: (any MTLResource)? { get }
    var parent: (any MTLTexture)? { get }
    var parentRelativeLevel: Int { get }
    var parentRelativeSlice: Int { get }
    var buffer: (any MTLBuffer)? { get }
    var bufferOffset: Int { get }
    var bufferBytesPerRow: Int { get }
    var textureType: MTLTextureType { get }
    var pixelFormat: MTLPixelFormat { get }
    var width: Int { get }
    var height: Int { get }
    var depth: Int { get }
    var mipmapLevelCount: Int { get }
    var sampleCount: Int { get }
    var arrayLength: Int { get }
    var usage: MTLTextureUsage { get }
    var isShareable: Bool { get }
    var isFramebufferOnly: Bool { get }
    var allowGPUOptimizedContents: Bool { get }
    var compressionType: MTLTextureCompressionType { get }
    var swizzle: MTLTextureSwizzleChannels { get }
    var gpuResourceID: MTLResourceID { get }
    func getBytes(
        _ pixelBytes: UnsafeMutableRawPointer, bytesPerRow: Int, bytesPerImage: Int, from region: MTLRegion,
        mipmapLevel level: Int, slice: Int)
    func getBytes(
        _ pixelBytes: UnsafeMutableRawPointer, bytesPerRow: Int, from region: MTLRegion, mipmapLevel level: Int)
    func replace(
        region: MTLRegion, mipmapLevel level: Int, slice: Int, withBytes pixelBytes: UnsafeRawPointer,
        bytesPerRow: Int, bytesPerImage: Int)
    func replace(
        region: MTLRegion, mipmapLevel level: Int, withBytes pixelBytes: UnsafeRawPointer, bytesPerRow: Int)
    func makeTextureView(pixelFormat: MTLPixelFormat) -> (any MTLTexture)?
    func makeTextureView(
        pixelFormat: MTLPixelFormat, textureType: MTLTextureType, levels levelRange: Range<Int>,
        slices sliceRange: Range<Int>
    ) -> (any MTLTexture)?
    func makeTextureView(
        pixelFormat: MTLPixelFormat, textureType: MTLTextureType, levels levelRange: Range<Int>,
        slices sliceRange: Range<Int>, swizzle: MTLTextureSwizzleChannels
    ) -> (any MTLTexture)?
}
