import Metal

public enum MPSImageFeatureChannelFormat: UInt, Sendable {
    case none = 0
    case unorm8 = 1
    case unorm16 = 2
    case float16 = 3
    case float32 = 4

    fileprivate func pixelFormat(channels: Int) -> MTLPixelFormat? {
        let formats: [MTLPixelFormat]
        switch self {
        case .none: return nil
        case .unorm8: formats = [.r8Unorm, .rg8Unorm, .rgba8Unorm, .rgba8Unorm]
        case .unorm16: formats = [.r16Unorm, .rg16Unorm, .rgba16Unorm, .rgba16Unorm]
        case .float16: formats = [.r16Float, .rg16Float, .rgba16Float, .rgba16Float]
        case .float32: formats = [.r32Float, .rg32Float, .rgba32Float, .rgba32Float]
        }
        return (1...4).contains(channels) ? formats[channels - 1] : nil
    }
}

public class MPSImageDescriptor: NSObject {
    public var width: Int
    public var height: Int
    public var featureChannels: Int
    public var numberOfImages = 1
    public var channelFormat: MPSImageFeatureChannelFormat
    public var usage: MTLTextureUsage = [.shaderRead, .shaderWrite]
    public var storageMode = MTLStorageMode.shared

    public init(channelFormat: MPSImageFeatureChannelFormat, width: Int, height: Int, featureChannels: Int) {
        (self.width, self.height, self.featureChannels) = (width, height, featureChannels)
        self.channelFormat = channelFormat
    }

    public convenience init(
        channelFormat: MPSImageFeatureChannelFormat, width: Int, height: Int, featureChannels: Int,
        numberOfImages: Int, usage: MTLTextureUsage
    ) {
        self.init(channelFormat: channelFormat, width: width, height: height, featureChannels: featureChannels)
        (self.numberOfImages, self.usage) = (numberOfImages, usage)
    }

    public var pixelFormat: MTLPixelFormat { channelFormat.pixelFormat(channels: featureChannels) ?? .invalid }
}

/// An image of one to four channels, in a texture.
public class MPSImage: NSObject {
    public let texture: any MTLTexture
    public let featureChannels: Int
    public var label: String?

    public init(texture: any MTLTexture, featureChannels: Int) {
        (self.texture, self.featureChannels) = (texture, featureChannels)
    }

    /// More than four channels, and several images, are not supported.
    public convenience init(device: any MTLDevice, imageDescriptor: MPSImageDescriptor) {
        precondition(
            imageDescriptor.pixelFormat != .invalid && imageDescriptor.numberOfImages == 1,
            "MPSImage: only one image of 1 to 4 channels is supported "
                + "(got \(imageDescriptor.numberOfImages) of \(imageDescriptor.featureChannels)); use several images.")
        let descriptor = MTLTextureDescriptor.texture2DDescriptor(
            pixelFormat: imageDescriptor.pixelFormat, width: imageDescriptor.width, height: imageDescriptor.height,
            mipmapped: false)
        (descriptor.usage, descriptor.storageMode) = (imageDescriptor.usage, imageDescriptor.storageMode)
        self.init(
            texture: device.makeTexture(descriptor: descriptor)!, featureChannels: imageDescriptor.featureChannels)
    }

    public var device: any MTLDevice { texture.device }
    public var width: Int { texture.width }
    public var height: Int { texture.height }
    public var numberOfImages: Int { 1 }
    public var pixelFormat: MTLPixelFormat { texture.pixelFormat }
    public var usage: MTLTextureUsage { texture.usage }
    public func resourceSize() -> Int { texture.allocatedSize }
    public func synchronize(on commandBuffer: any MTLCommandBuffer) {}
}

/// An image that a command buffer uses. It exists as long as something refers to it.
public class MPSTemporaryImage: MPSImage {
    public var readCount = 1

    public convenience init(commandBuffer: any MTLCommandBuffer, imageDescriptor: MPSImageDescriptor) {
        self.init(device: commandBuffer.device, imageDescriptor: imageDescriptor)
    }

    public convenience init(commandBuffer: any MTLCommandBuffer, textureDescriptor: MTLTextureDescriptor) {
        let texture = commandBuffer.device.makeTexture(descriptor: textureDescriptor)!
        self.init(texture: texture, featureChannels: isMonochrome(texture.pixelFormat) ? 1 : 4)
    }

    public class func prefetchStorage(
        with commandBuffer: any MTLCommandBuffer, imageDescriptorList: [MPSImageDescriptor]
    ) {}
}

/// The values that a filter reads outside of its source.
public enum MPSImageEdgeMode: UInt, Sendable {
    case zero, clamp, mirror, mirrorWithEdge, constant
}

public struct MPSOffset: Equatable, Sendable {
    public var x, y, z: Int
    public init() { (x, y, z) = (0, 0, 0) }
    public init(x: Int, y: Int, z: Int) { (self.x, self.y, self.z) = (x, y, z) }
}

/// The default of `clipRect`: the whole result.
public let MPSRectNoClip = MTLRegionMake3D(0, 0, 0, -1, -1, -1)

/// Makes the texture for the result of a filter that does not work in place.
public typealias MPSCopyAllocator = (MPSKernel, any MTLCommandBuffer, any MTLTexture) -> any MTLTexture

/// A filter of one image. It computes in float32, for textures of normalized integers and floats.
public class MPSUnaryImageKernel: MPSKernel {
    /// The position in the source of the result's first pixel.
    public var offset = MPSOffset()
    /// The part of the result that is written.
    public var clipRect = MPSRectNoClip
    public var edgeMode = MPSImageEdgeMode.zero

    public func encode(
        commandBuffer: any MTLCommandBuffer, sourceTexture: any MTLTexture, destinationTexture: any MTLTexture
    ) {
        check(
            sourceTexture !== destinationTexture, "the result is the source; use encode(commandBuffer:inPlaceTexture:)."
        )
        let part = clipped(destinationTexture, clipRect)
        filter(ImagePass(to: commandBuffer, from: sourceTexture, to: destinationTexture, part))
    }

    public func encode(
        commandBuffer: any MTLCommandBuffer, sourceImage: MPSImage, destinationImage: MPSImage
    ) {
        encode(
            commandBuffer: commandBuffer, sourceTexture: sourceImage.texture,
            destinationTexture: destinationImage.texture)
    }

    /// Replaces the texture's pixels, or the texture by that of `copyAllocator`. Returns true.
    @discardableResult
    public func encode(
        commandBuffer: any MTLCommandBuffer, inPlaceTexture texture: UnsafeMutablePointer<any MTLTexture>,
        fallbackCopyAllocator copyAllocator: MPSCopyAllocator? = nil
    ) -> Bool {
        let source = texture.pointee
        if let copyAllocator {
            let result = copyAllocator(self, commandBuffer, source)
            encode(commandBuffer: commandBuffer, sourceTexture: source, destinationTexture: result)
            texture.pointee = result
            return true
        }
        let copy = copied(source, to: commandBuffer)
        encode(commandBuffer: commandBuffer, sourceTexture: copy, destinationTexture: source)
        return true
    }

    private func copied(_ texture: any MTLTexture, to commandBuffer: any MTLCommandBuffer) -> any MTLTexture {
        let descriptor = MTLTextureDescriptor.texture2DDescriptor(
            pixelFormat: texture.pixelFormat, width: texture.width, height: texture.height, mipmapped: false)
        (descriptor.usage, descriptor.storageMode) = (.shaderRead, .private)
        let copy = device.makeTexture(descriptor: descriptor)!, encoder = commandBuffer.makeBlitCommandEncoder()!
        encoder.copy(
            from: texture, sourceSlice: 0, sourceLevel: 0, sourceOrigin: MTLOrigin(),
            sourceSize: MTLSizeMake(texture.width, texture.height, 1), to: copy, destinationSlice: 0,
            destinationLevel: 0, destinationOrigin: MTLOrigin())
        encoder.endEncoding()
        return copy
    }

    /// Encodes the filter. Subclasses implement it.
    func filter(_ pass: ImagePass) { preconditionFailure("\(Self.self) is no filter.") }

    /// Encodes a kernel of `imageKernels` for each pixel of a pass, with up to 4 numbers and a list of weights.
    func encode(
        _ function: String, _ pass: ImagePass, window: (Int, Int) = (1, 1), numbers: SIMD4<Float> = SIMD4(),
        weights: [Float] = [0], edge: MPSImageEdgeMode? = nil, second: (any MTLTexture)? = nil
    ) {
        let edge = edge ?? edgeMode
        check(edge != .constant, "the edge mode 'constant' is not supported; use 'zero' or 'clamp'.")
        let parameters = FilterParameters(
            offset: SIMD2(Int32(offset.x), Int32(offset.y)),
            origin: SIMD2(Int32(pass.part.origin.x), Int32(pass.part.origin.y)),
            window: SIMD2(Int32(window.0), Int32(window.1)), edge: UInt32(edge.rawValue),
            isMonochrome: isMonochrome(pass.destination.pixelFormat) ? 1 : 0, numbers: numbers)
        encodeImage(function, pass, parameters, weights, second: second)
    }
}

/// One dispatch of a filter.
struct ImagePass {
    var commandBuffer: any MTLCommandBuffer
    var source: any MTLTexture
    var destination: any MTLTexture
    /// The pixels of `destination` that are written.
    var part: MTLRegion

    init(
        to commandBuffer: any MTLCommandBuffer, from source: any MTLTexture, to destination: any MTLTexture,
        _ part: MTLRegion
    ) { (self.commandBuffer, self.source, self.destination, self.part) = (commandBuffer, source, destination, part) }
}

struct FilterParameters {
    var offset, origin, window: SIMD2<Int32>
    var edge, isMonochrome: UInt32
    var numbers: SIMD4<Float>
}

extension MPSKernel {
    func clipped(_ texture: any MTLTexture, _ clip: MTLRegion) -> MTLRegion {
        if clip.size.width == MPSRectNoClip.size.width { return MTLRegionMake2D(0, 0, texture.width, texture.height) }
        let (x, y) = (clip.origin.x, clip.origin.y)
        return MTLRegionMake2D(
            x, y, max(min(clip.size.width, texture.width - x), 0), max(min(clip.size.height, texture.height - y), 0))
    }

    func encodeImage<Parameters>(
        _ function: String, _ pass: ImagePass, _ parameters: Parameters, _ weights: [Float],
        second: (any MTLTexture)? = nil
    ) {
        guard pass.part.size.width > 0, pass.part.size.height > 0 else { return }
        guard let encoder = pass.commandBuffer.makeComputeCommandEncoder() else {
            preconditionFailure("\(Self.self): the command buffer has no compute encoder.")
        }
        encoder.label = label ?? "\(Self.self)"
        let pipeline = imagePipeline(function)
        encoder.setComputePipelineState(pipeline)
        encoder.setTexture(pass.source, index: 0)
        encoder.setTexture(second ?? pass.source, index: 1)
        encoder.setTexture(pass.destination, index: 2)
        withUnsafeBytes(of: parameters) { encoder.setBytes($0.baseAddress!, length: $0.count, index: 0) }
        // Long lists exceed what setBytes accepts.
        let buffer = device.makeBuffer(bytes: weights, length: weights.count * 4, options: .storageModeShared)
        encoder.setBuffer(buffer, offset: 0, index: 1)
        encoder.dispatchThreads(pass.part.size, threadsPerThreadgroup: MTLSizeMake(32, 1, 1))
        encoder.endEncoding()
    }
}

func isMonochrome(_ format: MTLPixelFormat) -> Bool {
    switch format {
    case .a8Unorm, .r8Unorm, .r8Unorm_srgb, .r8Snorm, .r16Unorm, .r16Snorm, .r16Float, .r32Float: return true
    default: return false
    }
}
