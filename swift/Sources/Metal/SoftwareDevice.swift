import MetalRuntime

/// Returns the software device, or the GPU that the setting `device` (`ORCHARD_METAL_DEVICE`) selects. If there is no
/// such GPU, returns nil and prints the reason.
public func MTLCreateSystemDefaultDevice() -> (any MTLDevice)? {
    let setting = takeMessage(mrt_setting_get("device")) ?? ""
    if setting.isEmpty || setting == "software" { return SoftwareDevice.shared }
    do { return try SoftwareDevice.gpu(named: setting) } catch {
        note("\(error)")
        return nil
    }
}

public func MTLCopyAllDevices() -> [any MTLDevice] { [SoftwareDevice.shared] + SoftwareDevice.gpus }

/// The software device, or an NVIDIA GPU that runs the same kernels without the checker. Both have the limits and
/// families of an M1.
final class SoftwareDevice: NSObject, MTLDevice, @unchecked Sendable {
    static let shared = SoftwareDevice(gpu: nil)
    static let pageSize: Int = 16384
    static let maxThreadgroupMemoryLength: Int = 32768
    static let maxThreadsPerThreadgroup: Int = 1024
    static let maxConstantBytes: Int = 4096
    static let maxBuffers: Int = 31

    /// The runtime's number of the GPU; nil for the software device.
    let gpu: UInt32?
    let name: String
    let registryID: UInt64
    let architecture: MTLArchitecture
    let maxThreadsPerThreadgroup = MTLSizeMake(1024, 1024, 1024)
    let maxThreadgroupMemoryLength: Int = SoftwareDevice.maxThreadgroupMemoryLength
    let isLowPower = false
    let isHeadless = true
    let isRemovable = false
    let hasUnifiedMemory: Bool
    let location: MTLDeviceLocation
    private let gpuMemory: UInt64
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

    init(gpu: UInt32?) {
        self.gpu = gpu
        var info = mrt_gpu_info()
        let isGPU = gpu.map { mrt_gpu_info_get($0, &info) } ?? false
        name = isGPU ? String(cString: info.name) : "Apple M1 (software)"
        registryID = 0x1_0000_0000 + (gpu.map { UInt64($0) + 1 } ?? 0)
        architecture = MTLArchitecture(name: isGPU ? "sm_\(info.major)\(info.minor)" : "applegpu_g13g")
        hasUnifiedMemory = !isGPU || info.integrated
        location = isGPU && !info.integrated ? .slot : .builtIn
        gpuMemory = info.memory
    }

    override var description: String { "<SoftwareDevice>\n    name = \(name)" }

    /// As on an Apple silicon Mac, about three quarters of the machine's memory, or the limit that was set.
    var recommendedMaxWorkingSetSize: UInt64 {
        let limit = setting("memory_limit") ?? 0
        if limit > 0 { return UInt64(limit) }
        return (gpu == nil ? ProcessInfo.processInfo.physicalMemory : gpuMemory) / 4 * 3
    }

    var maxBufferLength: Int {
        Int(recommendedMaxWorkingSetSize / 4 * 3) / SoftwareDevice.pageSize * SoftwareDevice.pageSize
    }

    var currentAllocatedSize: Int { gpu.map { mrt_gpu_memory_live_bytes($0) } ?? mrt_memory_live_bytes() }

    func supportsFamily(_ gpuFamily: MTLGPUFamily) -> Bool {
        switch gpuFamily {
        case .apple1, .apple2, .apple3, .apple4, .apple5, .apple6, .apple7: return true
        case .mac1, .mac2, .common1, .common2, .common3, .metal3, .metal4: return true
        case .apple8, .apple9, .apple10, .macCatalyst1, .macCatalyst2: return false
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
        return takeFault("queue") ? nil : SoftwareCommandQueue(self, maxCommandBufferCount: maxCommandBufferCount)
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
