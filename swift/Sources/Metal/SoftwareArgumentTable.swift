import MetalRuntime

/// The bindings of a Metal 4 encoder. Each dispatch takes a copy, so the table may change between dispatches.
final class SoftwareArgumentTable: NSObject, MTL4ArgumentTable {
    /// A buffer binding: an address, or the 8-byte handle of a resource such as a tensor.
    enum Entry {
        case address(MTLGPUAddress)
        case resource(UInt64)
    }

    struct Contents {
        var buffers: [Entry?] = []
        var textures: [UInt64?] = []
        var samplers: [UInt64?] = []
    }

    private(set) var contents = Contents()
    let label: String?
    private let softwareDevice: SoftwareDevice

    init(_ device: SoftwareDevice, _ descriptor: MTL4ArgumentTableDescriptor) {
        softwareDevice = device
        label = descriptor.label
        contents.buffers = Array(repeating: nil, count: descriptor.maxBufferBindCount)
        contents.textures = Array(repeating: nil, count: descriptor.maxTextureBindCount)
        contents.samplers = Array(repeating: nil, count: descriptor.maxSamplerStateBindCount)
    }

    var device: any MTLDevice { softwareDevice }

    func setAddress(_ gpuAddress: MTLGPUAddress, index bindingIndex: Int) {
        guard isIndex(bindingIndex, in: contents.buffers, "maxBufferBindCount", "setAddress:atIndex:") else { return }
        contents.buffers[bindingIndex] = gpuAddress == 0 ? nil : .address(gpuAddress)
    }

    func setAddress(_ gpuAddress: MTLGPUAddress, attributeStride stride: Int, index bindingIndex: Int) {
        misuse(
            Self.debugName, "setAddress:attributeStride:atIndex:",
            "attribute strides are for vertices, which this device has not: use setAddress(_:index:).")
    }

    func setResource(_ resourceID: MTLResourceID, bufferIndex bindingIndex: Int) {
        guard isIndex(bindingIndex, in: contents.buffers, "maxBufferBindCount", "setResource:atBufferIndex:") else {
            return
        }
        contents.buffers[bindingIndex] = .resource(resourceID.implementation)
    }

    func setTexture(_ resourceID: MTLResourceID, index bindingIndex: Int) {
        guard isIndex(bindingIndex, in: contents.textures, "maxTextureBindCount", "setTexture:atIndex:") else { return }
        contents.textures[bindingIndex] = resourceID.implementation
    }

    func setSamplerState(_ resourceID: MTLResourceID, index bindingIndex: Int) {
        guard isIndex(bindingIndex, in: contents.samplers, "maxSamplerStateBindCount", "setSamplerState:atIndex:")
        else { return }
        contents.samplers[bindingIndex] = resourceID.implementation
    }

    private func isIndex<Element>(_ index: Int, in list: [Element], _ limit: String, _ selector: String) -> Bool {
        list.indices.contains(index)
            || refuse(Self.debugName, selector, "index(\(index)) must be < the descriptor's \(limit)(\(list.count)).")
    }

    static let debugName = "MTL4DebugArgumentTable"
}

extension SoftwareDevice {
    func makeArgumentTable(descriptor: MTL4ArgumentTableDescriptor) throws -> any MTL4ArgumentTable {
        let limits = [
            ("maxBufferBindCount", descriptor.maxBufferBindCount, Self.maxBuffers),
            ("maxTextureBindCount", descriptor.maxTextureBindCount, Int(MRT_MAX_TEXTURES)),
            ("maxSamplerStateBindCount", descriptor.maxSamplerStateBindCount, Int(MRT_MAX_SAMPLERS)),
        ]
        for (name, count, limit) in limits where !(0...limit).contains(count) {
            throw DescribedError(
                domain: MTLLibraryErrorDomain, code: Int(MTLLibraryError.Code.unsupported.rawValue),
                userInfo: [NSLocalizedDescriptionKey: "\(name)(\(count)) must be <= \(limit)."])
        }
        return SoftwareArgumentTable(self, descriptor)
    }

    func makeCompiler(descriptor: MTL4CompilerDescriptor) throws -> any MTL4Compiler {
        SoftwareCompiler(self, descriptor)
    }

    func makeMTL4CommandQueue() -> (any MTL4CommandQueue)? { Metal4Queue(self, MTL4CommandQueueDescriptor()) }

    func makeMTL4CommandQueue(descriptor: MTL4CommandQueueDescriptor) throws -> any MTL4CommandQueue {
        Metal4Queue(self, descriptor)
    }

    func makeCommandAllocator() -> (any MTL4CommandAllocator)? {
        Metal4Allocator(self, MTL4CommandAllocatorDescriptor())
    }

    func makeCommandAllocator(descriptor: MTL4CommandAllocatorDescriptor) throws -> any MTL4CommandAllocator {
        Metal4Allocator(self, descriptor)
    }

    func makeCommandBuffer() -> (any MTL4CommandBuffer)? { Metal4Buffer(self) }
}
