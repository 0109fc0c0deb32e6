// Render pipelines, which this device does not support: descriptors exist, and pipelines are rejected.

public class MTLRenderPipelineColorAttachmentDescriptor: NSObject, NSCopying {
    public var pixelFormat = MTLPixelFormat.invalid
    public var isBlendingEnabled = false
    public var sourceRGBBlendFactor = MTLBlendFactor.one
    public var destinationRGBBlendFactor = MTLBlendFactor.zero
    public var rgbBlendOperation = MTLBlendOperation.add
    public var sourceAlphaBlendFactor = MTLBlendFactor.one
    public var destinationAlphaBlendFactor = MTLBlendFactor.zero
    public var alphaBlendOperation = MTLBlendOperation.add
    public var writeMask = MTLColorWriteMask.all

    public func copy(with zone: NSZone? = nil) -> Any {
        let copy = MTLRenderPipelineColorAttachmentDescriptor()
        (copy.pixelFormat, copy.isBlendingEnabled, copy.writeMask) = (pixelFormat, isBlendingEnabled, writeMask)
        (copy.sourceRGBBlendFactor, copy.destinationRGBBlendFactor) =
            (sourceRGBBlendFactor, destinationRGBBlendFactor)
        (copy.sourceAlphaBlendFactor, copy.destinationAlphaBlendFactor) =
            (sourceAlphaBlendFactor, destinationAlphaBlendFactor)
        (copy.rgbBlendOperation, copy.alphaBlendOperation) = (rgbBlendOperation, alphaBlendOperation)
        return copy
    }
}

public final class MTLRenderPipelineColorAttachmentDescriptorArray:
    _DescriptorArray<MTLRenderPipelineColorAttachmentDescriptor>
{
    init() { super.init(MTLRenderPipelineColorAttachmentDescriptor()) }
}

/// Properties that render and mesh pipelines share.
public class _MTLRasterizedPipelineDescriptor: NSObject {
    public var rasterSampleCount = 1
    public var isAlphaToCoverageEnabled = false
    public var isAlphaToOneEnabled = false
    public var isRasterizationEnabled = true
    public var maxVertexAmplificationCount = 1
    public let colorAttachments = MTLRenderPipelineColorAttachmentDescriptorArray()
    public var depthAttachmentPixelFormat = MTLPixelFormat.invalid
    public var stencilAttachmentPixelFormat = MTLPixelFormat.invalid

    func takeRasterization(_ other: _MTLRasterizedPipelineDescriptor) {
        (rasterSampleCount, isRasterizationEnabled) = (other.rasterSampleCount, other.isRasterizationEnabled)
        (isAlphaToCoverageEnabled, isAlphaToOneEnabled) = (other.isAlphaToCoverageEnabled, other.isAlphaToOneEnabled)
        maxVertexAmplificationCount = other.maxVertexAmplificationCount
        colorAttachments.take(other.colorAttachments)
        depthAttachmentPixelFormat = other.depthAttachmentPixelFormat
        stencilAttachmentPixelFormat = other.stencilAttachmentPixelFormat
    }
}

public class MTLRenderPipelineDescriptor: _MTLRasterizedPipelineDescriptor, NSCopying {
    public var label: String?
    public var vertexFunction: (any MTLFunction)?
    public var fragmentFunction: (any MTLFunction)?
    public var vertexDescriptor: MTLVertexDescriptor?
    public var sampleCount: Int {
        get { rasterSampleCount }
        set { rasterSampleCount = newValue }
    }
    public var inputPrimitiveTopology = MTLPrimitiveTopologyClass.unspecified
    public var tessellationPartitionMode = MTLTessellationPartitionMode.pow2
    public var maxTessellationFactor = 16
    public var isTessellationFactorScaleEnabled = false
    public var tessellationFactorFormat = MTLTessellationFactorFormat.half
    public var tessellationControlPointIndexType = MTLTessellationControlPointIndexType.none
    public var tessellationFactorStepFunction = MTLTessellationFactorStepFunction.constant
    public var tessellationOutputWindingOrder = MTLWinding.clockwise
    public let vertexBuffers = MTLPipelineBufferDescriptorArray()
    public let fragmentBuffers = MTLPipelineBufferDescriptorArray()
    public var supportIndirectCommandBuffers = false
    public var binaryArchives: [any MTLBinaryArchive]?
    public var vertexPreloadedLibraries: [any MTLDynamicLibrary] = []
    public var fragmentPreloadedLibraries: [any MTLDynamicLibrary] = []
    public var vertexLinkedFunctions: MTLLinkedFunctions! = MTLLinkedFunctions()
    public var fragmentLinkedFunctions: MTLLinkedFunctions! = MTLLinkedFunctions()
    public var supportAddingVertexBinaryFunctions = false
    public var supportAddingFragmentBinaryFunctions = false
    public var maxVertexCallStackDepth = 1
    public var maxFragmentCallStackDepth = 1
    public var shaderValidation = MTLShaderValidation.default

    public func reset() { take(MTLRenderPipelineDescriptor()) }

    public func copy(with zone: NSZone? = nil) -> Any {
        let copy = MTLRenderPipelineDescriptor()
        copy.take(self)
        return copy
    }

    private func take(_ other: MTLRenderPipelineDescriptor) {
        (label, vertexFunction, fragmentFunction) = (other.label, other.vertexFunction, other.fragmentFunction)
        vertexDescriptor = other.vertexDescriptor?.copy() as? MTLVertexDescriptor
        takeRasterization(other)
        inputPrimitiveTopology = other.inputPrimitiveTopology
        takeTessellation(other)
        vertexBuffers.replace(with: other.vertexBuffers)
        fragmentBuffers.replace(with: other.fragmentBuffers)
        (supportIndirectCommandBuffers, binaryArchives) = (other.supportIndirectCommandBuffers, other.binaryArchives)
        (vertexPreloadedLibraries, fragmentPreloadedLibraries) =
            (other.vertexPreloadedLibraries, other.fragmentPreloadedLibraries)
        vertexLinkedFunctions = other.vertexLinkedFunctions?.copy() as? MTLLinkedFunctions
        fragmentLinkedFunctions = other.fragmentLinkedFunctions?.copy() as? MTLLinkedFunctions
        supportAddingVertexBinaryFunctions = other.supportAddingVertexBinaryFunctions
        supportAddingFragmentBinaryFunctions = other.supportAddingFragmentBinaryFunctions
        (maxVertexCallStackDepth, maxFragmentCallStackDepth) =
            (other.maxVertexCallStackDepth, other.maxFragmentCallStackDepth)
        shaderValidation = other.shaderValidation
    }

    private func takeTessellation(_ other: MTLRenderPipelineDescriptor) {
        tessellationPartitionMode = other.tessellationPartitionMode
        maxTessellationFactor = other.maxTessellationFactor
        isTessellationFactorScaleEnabled = other.isTessellationFactorScaleEnabled
        tessellationFactorFormat = other.tessellationFactorFormat
        tessellationControlPointIndexType = other.tessellationControlPointIndexType
        tessellationFactorStepFunction = other.tessellationFactorStepFunction
        tessellationOutputWindingOrder = other.tessellationOutputWindingOrder
    }
}

public class MTLTileRenderPipelineColorAttachmentDescriptor: NSObject, NSCopying {
    public var pixelFormat = MTLPixelFormat.invalid

    public func copy(with zone: NSZone? = nil) -> Any {
        let copy = MTLTileRenderPipelineColorAttachmentDescriptor()
        copy.pixelFormat = pixelFormat
        return copy
    }
}

public final class MTLTileRenderPipelineColorAttachmentDescriptorArray:
    _DescriptorArray<MTLTileRenderPipelineColorAttachmentDescriptor>
{
    init() { super.init(MTLTileRenderPipelineColorAttachmentDescriptor()) }
}

public class MTLTileRenderPipelineDescriptor: NSObject, NSCopying {
    public var label: String?
    public var tileFunction: (any MTLFunction)!
    public var rasterSampleCount = 1
    public let colorAttachments = MTLTileRenderPipelineColorAttachmentDescriptorArray()
    public var threadgroupSizeMatchesTileSize = false
    public let tileBuffers = MTLPipelineBufferDescriptorArray()
    public var maxTotalThreadsPerThreadgroup = 0
    public var binaryArchives: [any MTLBinaryArchive]?
    public var preloadedLibraries: [any MTLDynamicLibrary] = []
    public var linkedFunctions: MTLLinkedFunctions! = MTLLinkedFunctions()
    public var supportAddingBinaryFunctions = false
    public var maxCallStackDepth = 1
    public var shaderValidation = MTLShaderValidation.default

    public func reset() { take(MTLTileRenderPipelineDescriptor()) }

    public func copy(with zone: NSZone? = nil) -> Any {
        let copy = MTLTileRenderPipelineDescriptor()
        copy.take(self)
        return copy
    }

    private func take(_ other: MTLTileRenderPipelineDescriptor) {
        (label, tileFunction, rasterSampleCount) = (other.label, other.tileFunction, other.rasterSampleCount)
        colorAttachments.take(other.colorAttachments)
        threadgroupSizeMatchesTileSize = other.threadgroupSizeMatchesTileSize
        tileBuffers.replace(with: other.tileBuffers)
        maxTotalThreadsPerThreadgroup = other.maxTotalThreadsPerThreadgroup
        (binaryArchives, preloadedLibraries) = (other.binaryArchives, other.preloadedLibraries)
        linkedFunctions = other.linkedFunctions?.copy() as? MTLLinkedFunctions
        supportAddingBinaryFunctions = other.supportAddingBinaryFunctions
        (maxCallStackDepth, shaderValidation) = (other.maxCallStackDepth, other.shaderValidation)
    }
}

public class MTLMeshRenderPipelineDescriptor: _MTLRasterizedPipelineDescriptor, NSCopying {
    public var label: String?
    public var objectFunction: (any MTLFunction)?
    public var meshFunction: (any MTLFunction)?
    public var fragmentFunction: (any MTLFunction)?
    public var maxTotalThreadsPerObjectThreadgroup = 0
    public var maxTotalThreadsPerMeshThreadgroup = 0
    public var objectThreadgroupSizeIsMultipleOfThreadExecutionWidth = false
    public var meshThreadgroupSizeIsMultipleOfThreadExecutionWidth = false
    public var payloadMemoryLength = 0
    public var maxTotalThreadgroupsPerMeshGrid = 0
    public let objectBuffers = MTLPipelineBufferDescriptorArray()
    public let meshBuffers = MTLPipelineBufferDescriptorArray()
    public let fragmentBuffers = MTLPipelineBufferDescriptorArray()
    public var supportIndirectCommandBuffers = false
    public var binaryArchives: [any MTLBinaryArchive]?
    public var objectLinkedFunctions: MTLLinkedFunctions! = MTLLinkedFunctions()
    public var meshLinkedFunctions: MTLLinkedFunctions! = MTLLinkedFunctions()
    public var fragmentLinkedFunctions: MTLLinkedFunctions! = MTLLinkedFunctions()
    public var shaderValidation = MTLShaderValidation.default

    public func reset() { take(MTLMeshRenderPipelineDescriptor()) }

    public func copy(with zone: NSZone? = nil) -> Any {
        let copy = MTLMeshRenderPipelineDescriptor()
        copy.take(self)
        return copy
    }

    private func take(_ other: MTLMeshRenderPipelineDescriptor) {
        (label, objectFunction, meshFunction) = (other.label, other.objectFunction, other.meshFunction)
        fragmentFunction = other.fragmentFunction
        maxTotalThreadsPerObjectThreadgroup = other.maxTotalThreadsPerObjectThreadgroup
        maxTotalThreadsPerMeshThreadgroup = other.maxTotalThreadsPerMeshThreadgroup
        objectThreadgroupSizeIsMultipleOfThreadExecutionWidth =
            other.objectThreadgroupSizeIsMultipleOfThreadExecutionWidth
        meshThreadgroupSizeIsMultipleOfThreadExecutionWidth =
            other.meshThreadgroupSizeIsMultipleOfThreadExecutionWidth
        payloadMemoryLength = other.payloadMemoryLength
        maxTotalThreadgroupsPerMeshGrid = other.maxTotalThreadgroupsPerMeshGrid
        objectBuffers.replace(with: other.objectBuffers)
        meshBuffers.replace(with: other.meshBuffers)
        fragmentBuffers.replace(with: other.fragmentBuffers)
        takeRasterization(other)
        (supportIndirectCommandBuffers, binaryArchives) = (other.supportIndirectCommandBuffers, other.binaryArchives)
        objectLinkedFunctions = other.objectLinkedFunctions?.copy() as? MTLLinkedFunctions
        meshLinkedFunctions = other.meshLinkedFunctions?.copy() as? MTLLinkedFunctions
        fragmentLinkedFunctions = other.fragmentLinkedFunctions?.copy() as? MTLLinkedFunctions
        shaderValidation = other.shaderValidation
    }
}

/// Reflection of a render pipeline. Always empty, since this device has no render pipelines.
public class MTLRenderPipelineReflection: NSObject {
    public var vertexBindings: [any MTLBinding] { [] }
    public var fragmentBindings: [any MTLBinding] { [] }
    public var tileBindings: [any MTLBinding] { [] }
    public var objectBindings: [any MTLBinding] { [] }
    public var meshBindings: [any MTLBinding] { [] }
}

public typealias MTLAutoreleasedRenderPipelineReflection = MTLRenderPipelineReflection
public typealias MTLNewRenderPipelineStateCompletionHandler =
    @Sendable ((any MTLRenderPipelineState)?, (any Error)?) -> Void
public typealias MTLNewRenderPipelineStateWithReflectionCompletionHandler =
    @Sendable ((any MTLRenderPipelineState)?, MTLRenderPipelineReflection?, (any Error)?) -> Void

public protocol MTLRenderPipelineState: NSObjectProtocol, Sendable {
    var label: String? { get }
    var device: any MTLDevice { get }
    var gpuResourceID: MTLResourceID { get }
    var maxTotalThreadsPerThreadgroup: Int { get }
    var threadgroupSizeMatchesTileSize: Bool { get }
    var imageblockSampleLength: Int { get }
    var supportIndirectCommandBuffers: Bool { get }
    var maxTotalThreadsPerObjectThreadgroup: Int { get }
    var maxTotalThreadsPerMeshThreadgroup: Int { get }
    var objectThreadExecutionWidth: Int { get }
    var meshThreadExecutionWidth: Int { get }
    var maxTotalThreadgroupsPerMeshGrid: Int { get }
    var shaderValidation: MTLShaderValidation { get }
    func imageblockMemoryLength(forDimensions imageblockDimensions: MTLSize) -> Int
}

extension SoftwareDevice {
    func makeRenderPipelineState(descriptor: MTLRenderPipelineDescriptor) throws -> any MTLRenderPipelineState {
        throw noRendering
    }

    func makeRenderPipelineState(
        descriptor: MTLRenderPipelineDescriptor, options: MTLPipelineOption,
        reflection: AutoreleasingUnsafeMutablePointer<MTLAutoreleasedRenderPipelineReflection?>?
    ) throws -> any MTLRenderPipelineState { throw noRendering }

    func makeRenderPipelineState(
        tileDescriptor descriptor: MTLTileRenderPipelineDescriptor, options: MTLPipelineOption,
        reflection: AutoreleasingUnsafeMutablePointer<MTLAutoreleasedRenderPipelineReflection?>?
    ) throws -> any MTLRenderPipelineState { throw noRendering }

    func makeRenderPipelineState(
        descriptor: MTLRenderPipelineDescriptor,
        completionHandler: @escaping MTLNewRenderPipelineStateCompletionHandler
    ) { completionHandler(nil, noRendering) }

    func makeRenderPipelineState(
        descriptor: MTLRenderPipelineDescriptor, options: MTLPipelineOption,
        completionHandler: @escaping MTLNewRenderPipelineStateWithReflectionCompletionHandler
    ) { completionHandler(nil, nil, noRendering) }

    private var noRendering: MTLLibraryError {
        MTLLibraryError(.unsupported, "\(name) does not render: it runs compute kernels only.")
    }
}

extension MTLDevice {
    public func makeRenderPipelineState(
        descriptor: MTLMeshRenderPipelineDescriptor, options: MTLPipelineOption
    ) throws -> (any MTLRenderPipelineState, MTLRenderPipelineReflection?) {
        throw MTLLibraryError(.unsupported, "\(name) does not render: it runs compute kernels only.")
    }
}
