import MetalRuntime

public func MTLCreateSystemDefaultDevice() -> (any MTLDevice)? { SoftwareDevice.shared }

public func MTLCopyAllDevices() -> [any MTLDevice] { [SoftwareDevice.shared] }

/// The only device. It has the limits and families of an M1, and its name says that it is software.
final class SoftwareDevice: NSObject, MTLDevice, @unchecked Sendable {
    static let shared = SoftwareDevice()
    static let pageSize: Int = 16384
    static let maxThreadgroupMemoryLength: Int = 32768
    static let maxThreadsPerThreadgroup: Int = 1024
    static let maxConstantBytes: Int = 4096
    static let maxBuffers: Int = 31

    let name = "Apple M1 (software)"
    let registryID: UInt64 = 0x1_0000_0000
    let architecture = MTLArchitecture(name: "applegpu_g13g")
    let maxThreadsPerThreadgroup = MTLSizeMake(1024, 1024, 1024)
    let maxThreadgroupMemoryLength: Int = SoftwareDevice.maxThreadgroupMemoryLength
    let isLowPower = false
    let isHeadless = true
    let isRemovable = false
    let hasUnifiedMemory = true
    let location = MTLDeviceLocation.builtIn
    let locationNumber = 0
    let maxTransferRate: UInt64 = 0
    let peerGroupID: UInt64 = 0
    let peerIndex: UInt32 = 0
    let peerCount: UInt32 = 0
    let argumentBuffersSupport = MTLArgumentBuffersTier.tier2
    let maxArgumentBufferSamplerCount = 1024
    let maximumConcurrentCompilationTaskCount = 2
    var shouldMaximizeConcurrentCompilation = false

    // This device does not support rendering and ray tracing.
    let areRasterOrderGroupsSupported = false
    let areProgrammableSamplePositionsSupported = false
    let areBarycentricCoordsSupported = false
    let supportsShaderBarycentricCoordinates = false
    let isDepth24Stencil8PixelFormatSupported = false
    let supports32BitFloatFiltering = false
    let supports32BitMSAA = false
    let supportsQueryTextureLOD = false
    let supportsBCTextureCompression = false
    let supportsPullModelInterpolation = false
    let supportsDynamicLibraries = true
    let supportsRenderDynamicLibraries = false
    let supportsRaytracing = false
    let supportsRaytracingFromRender = false
    let supportsFunctionPointers = false
    let supportsFunctionPointersFromRender = false
    let supportsPrimitiveMotionBlur = false

    override var description: String { "<SoftwareDevice>\n    name = \(name)" }

    /// As on an Apple silicon Mac, about three quarters of the machine's memory, or the limit that was set.
    var recommendedMaxWorkingSetSize: UInt64 {
        let limit = setting("memory_limit") ?? 0
        return limit > 0 ? UInt64(limit) : ProcessInfo.processInfo.physicalMemory / 4 * 3
    }

    var maxBufferLength: Int {
        Int(recommendedMaxWorkingSetSize / 4 * 3) / SoftwareDevice.pageSize * SoftwareDevice.pageSize
    }

    var currentAllocatedSize: Int { mrt_memory_live_bytes() }

    func supportsFamily(_ gpuFamily: MTLGPUFamily) -> Bool {
        switch gpuFamily {
        case .apple1, .apple2, .apple3, .apple4, .apple5, .apple6, .apple7: return true
        case .mac1, .mac2, .common1, .common2, .common3, .metal3: return true
        case .apple8, .apple9, .macCatalyst1, .macCatalyst2: return false
        }
    }

    func supportsFeatureSet(_ featureSet: MTLFeatureSet) -> Bool { true }

    func supportsTextureSampleCount(_ sampleCount: Int) -> Bool { false }

    func makeCommandQueue() -> (any MTLCommandQueue)? { makeCommandQueue(maxCommandBufferCount: 64) }

    func makeCommandQueue(maxCommandBufferCount: Int) -> (any MTLCommandQueue)? {
        guard
            maxCommandBufferCount > 0
                || refuse(
                    "MTLDebugDevice", "newCommandQueueWithMaxCommandBufferCount:",
                    """
                    maxCommandBufferCount(\(maxCommandBufferCount)) must be > 0.
                    """)
        else { return nil }
        return takeFault("queue") ? nil : SoftwareCommandQueue(maxCommandBufferCount: maxCommandBufferCount)
    }

    func makeCommandQueue(descriptor: MTLCommandQueueDescriptor) -> (any MTLCommandQueue)? {
        makeCommandQueue(maxCommandBufferCount: descriptor.maxCommandBufferCount)
    }

    func makeFence() -> (any MTLFence)? { SoftwareFence() }
    func makeEvent() -> (any MTLEvent)? { SoftwareEvent() }
    func makeSharedEvent() -> (any MTLSharedEvent)? { SoftwareSharedEvent() }

    func makeSharedEvent(handle sharedEventHandle: MTLSharedEventHandle) -> (any MTLSharedEvent)? {
        sharedEventHandle.event
    }

    func makeResidencySet(descriptor desc: MTLResidencySetDescriptor) throws -> any MTLResidencySet {
        SoftwareResidencySet(label: desc.label)
    }

    func sampleTimestamps() -> (cpu: MTLTimestamp, gpu: MTLTimestamp) {
        let now = MTLTimestamp(hostTime() * 1e9)
        return (now, now)
    }

    func makeLogState(descriptor: MTLLogStateDescriptor) throws -> any MTLLogState {
        throw DescribedError(
            domain: MTLLogStateErrorDomain, code: Int(MTLLogStateError.invalid.rawValue),
            userInfo: [
                NSLocalizedDescriptionKey: "\(name) has no shader logging: remove the log state, or write to a buffer."
            ])
    }
}

/// Returns the monotonic clock in seconds, as used for GPU times.
func hostTime() -> CFTimeInterval { Double(DispatchTime.now().uptimeNanoseconds) * 1e-9 }
