/// Memory of command buffers in Metal 4. Here it only knows whether one of its command buffers still runs.
final class Metal4Allocator: NSObject, MTL4CommandAllocator, @unchecked Sendable {
    let label: String?
    private let softwareDevice: SoftwareDevice
    private let running = Guarded(0)

    init(_ device: SoftwareDevice, _ descriptor: MTL4CommandAllocatorDescriptor) {
        softwareDevice = device
        label = descriptor.label
    }

    var device: any MTLDevice { softwareDevice }

    func allocatedSize() -> UInt64 { 0 }

    func reset() {
        guard running.withLock({ $0 }) > 0 else { return }
        misuse(
            "MTL4DebugCommandAllocator", "reset",
            "a command buffer of this allocator still runs: wait for it before reset.")
    }

    func begin() { running.withLock { $0 += 1 } }
    func end() { running.withLock { $0 -= 1 } }
}

/// A command buffer of Metal 4: the list of recorded commands, which the queue encodes at commit.
final class Metal4Buffer: NSObject, MTL4CommandBuffer {
    /// The commands that an encoder records.
    enum Operation {
        case dispatch(Metal4Dispatch)
        case blit(label: String?, [any MTLResource], (any MTLBlitCommandEncoder) -> Void)
        case barrier
    }

    private enum State { case new, open, ended }

    var label: String?
    private(set) var operations: [Operation] = []
    private(set) var residencySets: [any MTLResidencySet] = []
    private(set) var allocator: Metal4Allocator?
    private var state = State.new
    private var groups: [String] = []
    private weak var encoder: Metal4Encoder?
    private let softwareDevice: SoftwareDevice

    init(_ device: SoftwareDevice) { softwareDevice = device }

    var device: any MTLDevice { softwareDevice }
    var isEnded: Bool { state == .ended }

    /// The open debug groups, outermost first, behind the label.
    var path: [String] { [label].compactMap { $0 } + groups }

    func beginCommandBuffer(allocator: any MTL4CommandAllocator) {
        let selector = "beginCommandBufferWithAllocator:"
        guard state != .open || refuse(Self.debugName, selector, "the command buffer has already begun.") else {
            return
        }
        operations = []
        residencySets = []
        groups = []
        self.allocator = allocator as? Metal4Allocator
        state = .open
    }

    func beginCommandBuffer(allocator: any MTL4CommandAllocator, options: MTL4CommandBufferOptions) {
        beginCommandBuffer(allocator: allocator)
    }

    func endCommandBuffer() {
        let selector = "endCommandBuffer"
        guard isOpen(selector),
            encoder?.isOpen != true || refuse(Self.debugName, selector, "an encoder has not ended: call endEncoding."),
            groups.isEmpty
                || refuse(Self.debugName, selector, "debug groups \(groups) were pushed and not popped.")
        else { return }
        state = .ended
    }

    /// Called at commit: afterwards the command buffer may begin again.
    func finish() { state = .new }

    func makeComputeCommandEncoder() -> (any MTL4ComputeCommandEncoder)? {
        let selector = "computeCommandEncoder"
        guard isOpen(selector),
            encoder?.isOpen != true
                || refuse(Self.debugName, selector, "A command encoder is already encoding to this command buffer")
        else { return nil }
        let encoder = Metal4Encoder(self)
        self.encoder = encoder
        return encoder
    }

    func useResidencySet(_ residencySet: any MTLResidencySet) {
        guard isOpen("useResidencySet:") else { return }
        residencySets.append(residencySet)
    }

    func useResidencySets(_ residencySets: [any MTLResidencySet]) { residencySets.forEach(useResidencySet) }

    func pushDebugGroup(_ string: String) {
        guard isOpen("pushDebugGroup:") else { return }
        groups.append(string)
    }

    func popDebugGroup() {
        guard isOpen("popDebugGroup"),
            !groups.isEmpty
                || refuse(Self.debugName, "popDebugGroup", "popDebugGroup called without a matching pushDebugGroup.")
        else { return }
        groups.removeLast()
    }

    func record(_ operation: Operation) { operations.append(operation) }

    private func isOpen(_ selector: String) -> Bool {
        state == .open
            || refuse(Self.debugName, selector, "the command buffer has not begun: call beginCommandBuffer first.")
    }

    private static let debugName = "MTL4DebugCommandBuffer"
}

/// A dispatch, with copies of its bindings at the time of encoding.
struct Metal4Dispatch {
    enum Grid {
        case threads(MTLSize)
        case threadgroups(MTLSize)
        case indirect(MTLGPUAddress)
    }

    let label: String?
    let pipeline: (any MTLComputePipelineState)?
    let arguments: SoftwareArgumentTable.Contents
    let threadgroupLengths: [Int: Int]
    let grid: Grid
    let threadsPerThreadgroup: MTLSize
}
