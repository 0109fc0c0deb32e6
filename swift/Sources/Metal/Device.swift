public enum MTLGPUFamily: Int, Sendable {
    case apple1 = 1001
    case apple2 = 1002
    case apple3 = 1003
    case apple4 = 1004
    case apple5 = 1005
    case apple6 = 1006
    case apple7 = 1007
    case apple8 = 1008
    case apple9 = 1009
    case apple10 = 1010
    case mac1 = 2001
    case mac2 = 2002
    case common1 = 3001
    case common2 = 3002
    case common3 = 3003
    case macCatalyst1 = 4001
    case macCatalyst2 = 4002
    case metal3 = 5001
    case metal4 = 5002
}

/// The predecessor of `MTLGPUFamily`, which older programs still query.
public enum MTLFeatureSet: UInt, Sendable {
    case macOS_GPUFamily1_v1 = 10000
    case macOS_GPUFamily1_v2 = 10001
    case macOS_ReadWriteTextureTier2 = 10002
    case macOS_GPUFamily1_v3 = 10003
    case macOS_GPUFamily1_v4 = 10004
    case macOS_GPUFamily2_v1 = 10005
}

public enum MTLArgumentBuffersTier: UInt, Sendable {
    case tier1 = 0
    case tier2 = 1
}

public enum MTLReadWriteTextureTier: UInt, Sendable {
    case tierNone = 0
    case tier1 = 1
    case tier2 = 2
}

public enum MTLDeviceLocation: UInt, Sendable {
    case builtIn = 0
    case slot = 1
    case external = 2
    case unspecified = 18446744073709551615
}

public struct MTLPipelineOption: OptionSet, Sendable {
    public let rawValue: UInt

    public init(rawValue: UInt) { self.rawValue = rawValue }

    public static var argumentInfo: MTLPipelineOption { MTLPipelineOption(rawValue: 1) }
    public static var bindingInfo: MTLPipelineOption { MTLPipelineOption(rawValue: 1) }
    public static var bufferTypeInfo: MTLPipelineOption { MTLPipelineOption(rawValue: 2) }
    public static var failOnBinaryArchiveMiss: MTLPipelineOption { MTLPipelineOption(rawValue: 4) }
}

public class MTLArchitecture: NSObject, NSCopying {
    public let name: String

    init(name: String) { self.name = name }

    public func copy(with zone: NSZone? = nil) -> Any { self }
}

public typealias MTLNewLibraryCompletionHandler = @Sendable ((any MTLLibrary)?, (any Error)?) -> Void
public typealias MTLNewComputePipelineStateCompletionHandler =
    @Sendable ((any MTLComputePipelineState)?, (any Error)?) -> Void
public typealias MTLNewComputePipelineStateWithReflectionCompletionHandler =
    @Sendable ((any MTLComputePipelineState)?, MTLComputePipelineReflection?, (any Error)?) -> Void
public typealias MTLAutoreleasedComputePipelineReflection = MTLComputePipelineReflection

public protocol MTLDevice: NSObjectProtocol, Sendable {
    var name: String { get }
    var registryID: UInt64 { get }
    var architecture: MTLArchitecture { get }
    var maxThreadsPerThreadgroup: MTLSize { get }
    var maxThreadgroupMemoryLength: Int { get }
    var maxBufferLength: Int { get }
    var isLowPower: Bool { get }
    var isHeadless: Bool { get }
    var isRemovable: Bool { get }
    var hasUnifiedMemory: Bool { get }
    var recommendedMaxWorkingSetSize: UInt64 { get }
    var currentAllocatedSize: Int { get }
    var location: MTLDeviceLocation { get }
    var locationNumber: Int { get }
    var maxTransferRate: UInt64 { get }
    var peerGroupID: UInt64 { get }
    var peerIndex: UInt32 { get }
    var peerCount: UInt32 { get }
    var argumentBuffersSupport: MTLArgumentBuffersTier { get }
    var maxArgumentBufferSamplerCount: Int { get }
    var areRasterOrderGroupsSupported: Bool { get }
    var areProgrammableSamplePositionsSupported: Bool { get }
    var areBarycentricCoordsSupported: Bool { get }
    var supportsShaderBarycentricCoordinates: Bool { get }
    var isDepth24Stencil8PixelFormatSupported: Bool { get }
    var supports32BitFloatFiltering: Bool { get }
    var supports32BitMSAA: Bool { get }
    var supportsQueryTextureLOD: Bool { get }
    var supportsBCTextureCompression: Bool { get }
    var supportsPullModelInterpolation: Bool { get }
    var supportsDynamicLibraries: Bool { get }
    var supportsRenderDynamicLibraries: Bool { get }
    var supportsRaytracing: Bool { get }
    var supportsRaytracingFromRender: Bool { get }
    var supportsFunctionPointers: Bool { get }
    var supportsFunctionPointersFromRender: Bool { get }
    var supportsPrimitiveMotionBlur: Bool { get }
    var maximumConcurrentCompilationTaskCount: Int { get }
    var shouldMaximizeConcurrentCompilation: Bool { get set }
    func supportsFamily(_ gpuFamily: MTLGPUFamily) -> Bool
    func supportsFeatureSet(_ featureSet: MTLFeatureSet) -> Bool
    func supportsTextureSampleCount(_ sampleCount: Int) -> Bool

    func makeBuffer(length: Int, options: MTLResourceOptions) -> (any MTLBuffer)?
    func makeBuffer(bytes pointer: UnsafeRawPointer, length: Int, options: MTLResourceOptions) -> (any MTLBuffer)?
    func makeBuffer(
        bytesNoCopy pointer: UnsafeMutableRawPointer, length: Int, options: MTLResourceOptions,
        deallocator: ((UnsafeMutableRawPointer, Int) -> Void)?
    ) -> (any MTLBuffer)?
    func heapBufferSizeAndAlign(length: Int, options: MTLResourceOptions) -> MTLSizeAndAlign
    func makeHeap(descriptor: MTLHeapDescriptor) -> (any MTLHeap)?
    func makeResidencySet(descriptor desc: MTLResidencySetDescriptor) throws -> any MTLResidencySet

    func makeArgumentEncoder(arguments: [MTLArgumentDescriptor]) -> (any MTLArgumentEncoder)?
    func makeIndirectCommandBuffer(
        descriptor: MTLIndirectCommandBufferDescriptor, maxCommandCount maxCount: Int, options: MTLResourceOptions
    ) -> (any MTLIndirectCommandBuffer)?
    var counterSets: [any MTLCounterSet]? { get }
    func supportsCounterSampling(_ samplingPoint: MTLCounterSamplingPoint) -> Bool
    func makeCounterSampleBuffer(descriptor: MTLCounterSampleBufferDescriptor) throws -> any MTLCounterSampleBuffer
    func makeRenderPipelineState(descriptor: MTLRenderPipelineDescriptor) throws -> any MTLRenderPipelineState
    func makeRenderPipelineState(
        descriptor: MTLRenderPipelineDescriptor, options: MTLPipelineOption,
        reflection: AutoreleasingUnsafeMutablePointer<MTLAutoreleasedRenderPipelineReflection?>?
    ) throws -> any MTLRenderPipelineState
    func makeRenderPipelineState(
        tileDescriptor descriptor: MTLTileRenderPipelineDescriptor, options: MTLPipelineOption,
        reflection: AutoreleasingUnsafeMutablePointer<MTLAutoreleasedRenderPipelineReflection?>?
    ) throws -> any MTLRenderPipelineState
    @preconcurrency
    func makeRenderPipelineState(
        descriptor: MTLRenderPipelineDescriptor,
        completionHandler: @escaping MTLNewRenderPipelineStateCompletionHandler)
    @preconcurrency
    func makeRenderPipelineState(
        descriptor: MTLRenderPipelineDescriptor, options: MTLPipelineOption,
        completionHandler: @escaping MTLNewRenderPipelineStateWithReflectionCompletionHandler)
    func makeDepthStencilState(descriptor: MTLDepthStencilDescriptor) -> (any MTLDepthStencilState)?
    func supportsRasterizationRateMap(layerCount: Int) -> Bool
    func supportsVertexAmplificationCount(_ count: Int) -> Bool
    func makeRasterizationRateMap(descriptor: MTLRasterizationRateMapDescriptor) -> (any MTLRasterizationRateMap)?
    func accelerationStructureSizes(descriptor: MTLAccelerationStructureDescriptor) -> MTLAccelerationStructureSizes
    func makeAccelerationStructure(size: Int) -> (any MTLAccelerationStructure)?
    func makeAccelerationStructure(descriptor: MTLAccelerationStructureDescriptor) -> (any MTLAccelerationStructure)?
    func makeTexture(descriptor: MTLTextureDescriptor) -> (any MTLTexture)?
    func makeSamplerState(descriptor: MTLSamplerDescriptor) -> (any MTLSamplerState)?
    func makeTensor(descriptor: MTLTensorDescriptor) throws -> any MTLTensor
    func tensorSizeAndAlign(descriptor: MTLTensorDescriptor) -> MTLSizeAndAlign
    func heapTextureSizeAndAlign(descriptor desc: MTLTextureDescriptor) -> MTLSizeAndAlign
    func minimumLinearTextureAlignment(for format: MTLPixelFormat) -> Int
    func minimumTextureBufferAlignment(for format: MTLPixelFormat) -> Int
    var readWriteTextureSupport: MTLReadWriteTextureTier { get }

    func makeCommandQueue() -> (any MTLCommandQueue)?
    func makeCommandQueue(maxCommandBufferCount: Int) -> (any MTLCommandQueue)?
    func makeCommandQueue(descriptor: MTLCommandQueueDescriptor) -> (any MTLCommandQueue)?
    func makeMTL4CommandQueue() -> (any MTL4CommandQueue)?
    func makeMTL4CommandQueue(descriptor: MTL4CommandQueueDescriptor) throws -> any MTL4CommandQueue
    func makeCommandAllocator() -> (any MTL4CommandAllocator)?
    func makeCommandAllocator(descriptor: MTL4CommandAllocatorDescriptor) throws -> any MTL4CommandAllocator
    func makeCommandBuffer() -> (any MTL4CommandBuffer)?
    func makeArgumentTable(descriptor: MTL4ArgumentTableDescriptor) throws -> any MTL4ArgumentTable
    func makeCompiler(descriptor: MTL4CompilerDescriptor) throws -> any MTL4Compiler
    func makeFence() -> (any MTLFence)?
    func makeEvent() -> (any MTLEvent)?
    func makeSharedEvent() -> (any MTLSharedEvent)?
    func makeSharedEvent(handle sharedEventHandle: MTLSharedEventHandle) -> (any MTLSharedEvent)?
    func sampleTimestamps() -> (cpu: MTLTimestamp, gpu: MTLTimestamp)

    func makeDefaultLibrary() -> (any MTLLibrary)?
    func makeDefaultLibrary(bundle: Bundle) throws -> any MTLLibrary
    func makeLibrary(URL url: URL) throws -> any MTLLibrary
    func makeLibrary(filepath: String) throws -> any MTLLibrary
    func makeLibrary(data: DispatchData) throws -> any MTLLibrary
    func makeLibrary(source: String, options: MTLCompileOptions?) throws -> any MTLLibrary
    @preconcurrency
    func makeLibrary(
        source: String, options: MTLCompileOptions?, completionHandler: @escaping MTLNewLibraryCompletionHandler)
    func makeDynamicLibrary(library: any MTLLibrary) throws -> any MTLDynamicLibrary
    func makeDynamicLibrary(url: URL) throws -> any MTLDynamicLibrary
    func makeBinaryArchive(descriptor: MTLBinaryArchiveDescriptor) throws -> any MTLBinaryArchive
    func makeLogState(descriptor: MTLLogStateDescriptor) throws -> any MTLLogState

    func makeComputePipelineState(function computeFunction: any MTLFunction) throws -> any MTLComputePipelineState
    func makeComputePipelineState(
        function computeFunction: any MTLFunction, options: MTLPipelineOption,
        reflection: AutoreleasingUnsafeMutablePointer<MTLAutoreleasedComputePipelineReflection?>?
    ) throws -> any MTLComputePipelineState
    @preconcurrency
    func makeComputePipelineState(
        function computeFunction: any MTLFunction,
        completionHandler: @escaping MTLNewComputePipelineStateCompletionHandler)
    @preconcurrency
    func makeComputePipelineState(
        function computeFunction: any MTLFunction, options: MTLPipelineOption,
        completionHandler: @escaping MTLNewComputePipelineStateWithReflectionCompletionHandler)
    func makeComputePipelineState(
        descriptor: MTLComputePipelineDescriptor, options: MTLPipelineOption,
        reflection: AutoreleasingUnsafeMutablePointer<MTLAutoreleasedComputePipelineReflection?>?
    ) throws -> any MTLComputePipelineState
    @preconcurrency
    func makeComputePipelineState(
        descriptor: MTLComputePipelineDescriptor, options: MTLPipelineOption,
        completionHandler: @escaping MTLNewComputePipelineStateWithReflectionCompletionHandler)
}

public typealias MTLTimestamp = UInt64

// Forms of methods that a protocol cannot declare: methods with the default arguments of Apple's declarations, methods
// that Swift imports twice (with a handler and as `async`), and methods that return reflection.
extension MTLDevice {
    public func makeBuffer(length: Int) -> (any MTLBuffer)? { makeBuffer(length: length, options: []) }

    public func makeBuffer(bytes pointer: UnsafeRawPointer, length: Int) -> (any MTLBuffer)? {
        makeBuffer(bytes: pointer, length: length, options: [])
    }

    public func makeBuffer(
        bytesNoCopy pointer: UnsafeMutableRawPointer, length: Int,
        deallocator: ((UnsafeMutableRawPointer, Int) -> Void)? = nil
    ) -> (any MTLBuffer)? {
        makeBuffer(bytesNoCopy: pointer, length: length, options: [], deallocator: deallocator)
    }

    public func makeBuffer(
        bytesNoCopy pointer: UnsafeMutableRawPointer, length: Int, options: MTLResourceOptions
    ) -> (any MTLBuffer)? {
        makeBuffer(bytesNoCopy: pointer, length: length, options: options, deallocator: nil)
    }

    public func heapBufferSizeAndAlign(length: Int) -> MTLSizeAndAlign {
        heapBufferSizeAndAlign(length: length, options: [])
    }

    public func makeComputePipelineState(
        function computeFunction: any MTLFunction, options: MTLPipelineOption
    ) throws -> (any MTLComputePipelineState, MTLComputePipelineReflection?) {
        var reflection: MTLAutoreleasedComputePipelineReflection?
        let state = try makeComputePipelineState(function: computeFunction, options: options, reflection: &reflection)
        return (state, reflection)
    }

    public func makeComputePipelineState(
        descriptor: MTLComputePipelineDescriptor, options: MTLPipelineOption
    ) throws -> (any MTLComputePipelineState, MTLComputePipelineReflection?) {
        var reflection: MTLAutoreleasedComputePipelineReflection?
        let state = try makeComputePipelineState(descriptor: descriptor, options: options, reflection: &reflection)
        return (state, reflection)
    }

    public func makeLibrary(source: String, options: MTLCompileOptions?) async throws -> any MTLLibrary {
        try await withCheckedThrowingContinuation { continuation in
            makeLibrary(source: source, options: options) { continuation.resume(with: outcome($0, $1)) }
        }
    }

    public func makeComputePipelineState(
        function computeFunction: any MTLFunction
    ) async throws -> any MTLComputePipelineState {
        try await withCheckedThrowingContinuation { continuation in
            makeComputePipelineState(function: computeFunction) { continuation.resume(with: outcome($0, $1)) }
        }
    }

    public func makeComputePipelineState(
        function computeFunction: any MTLFunction, options: MTLPipelineOption
    ) async throws -> (any MTLComputePipelineState, MTLComputePipelineReflection?) {
        try await withCheckedThrowingContinuation { continuation in
            makeComputePipelineState(function: computeFunction, options: options) { state, reflection, error in
                continuation.resume(with: outcome(state.map { ($0, reflection) }, error))
            }
        }
    }

    public func makeComputePipelineState(
        descriptor: MTLComputePipelineDescriptor, options: MTLPipelineOption
    ) async throws -> (any MTLComputePipelineState, MTLComputePipelineReflection?) {
        try await withCheckedThrowingContinuation { continuation in
            makeComputePipelineState(descriptor: descriptor, options: options) { state, reflection, error in
                continuation.resume(with: outcome(state.map { ($0, reflection) }, error))
            }
        }
    }
}

/// Converts the arguments of a completion handler to a result.
func outcome<Value>(_ value: Value?, _ error: (any Error)?) -> Result<Value, any Error> {
    value.map { .success($0) } ?? .failure(error ?? MTLLibraryError(.internal))
}
