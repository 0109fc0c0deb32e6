/// Encodes the operations of a Metal 4 command buffer for Metal 3. Dispatches between two copies share a concurrent
/// encoder, since only barriers order them; copies are run in order.
struct Metal4Replay {
    private let commands: SoftwareCommandBuffer
    private let residents: Residents

    init(_ commands: SoftwareCommandBuffer, _ residents: Residents) {
        self.commands = commands
        self.residents = residents
    }

    func run(_ operations: [Metal4Buffer.Operation]) {
        var encoder: SoftwareComputeEncoder?
        for operation in operations {
            switch operation {
            case .barrier: encoder?.memoryBarrier(scope: [.buffers, .textures])
            case .dispatch(let dispatch):
                let open = encoder ?? begin()
                encoder = open
                encode(dispatch, open)
            case .blit(let label, let resources, let encode):
                encoder?.endEncoding()
                encoder = nil
                guard resources.allSatisfy({ isResident($0, "a copy") }) else { continue }
                let blit = commands.makeBlitCommandEncoder()!
                blit.label = label
                encode(blit)
                blit.endEncoding()
            }
        }
        encoder?.endEncoding()
    }

    private func begin() -> SoftwareComputeEncoder {
        let encoder = commands.makeComputeCommandEncoder(dispatchType: .concurrent) as! SoftwareComputeEncoder
        for case let resource as any MTLResource in residents.allocations {
            encoder.useResource(resource, usage: [.read, .write])
        }
        encoder.useHeaps(residents.allocations.compactMap { $0 as? SoftwareHeap })
        return encoder
    }

    private func encode(_ dispatch: Metal4Dispatch, _ encoder: SoftwareComputeEncoder) {
        encoder.label = dispatch.label
        encoder.removeBindings()
        guard bind(dispatch.arguments, encoder) else { return }
        if let pipeline = dispatch.pipeline { encoder.setComputePipelineState(pipeline) }
        for (index, length) in dispatch.threadgroupLengths {
            encoder.setThreadgroupMemoryLength(length, index: index)
        }
        switch dispatch.grid {
        case .threads(let size):
            encoder.dispatchThreads(size, threadsPerThreadgroup: dispatch.threadsPerThreadgroup)
        case .threadgroups(let count):
            encoder.dispatchThreadgroups(count, threadsPerThreadgroup: dispatch.threadsPerThreadgroup)
        case .indirect(let address):
            guard let (buffer, offset) = buffer(at: address, "the indirect buffer") else { return }
            encoder.dispatchThreadgroups(
                indirectBuffer: buffer, indirectBufferOffset: offset,
                threadsPerThreadgroup: dispatch.threadsPerThreadgroup)
        }
    }

    private func bind(_ arguments: SoftwareArgumentTable.Contents, _ encoder: SoftwareComputeEncoder) -> Bool {
        for (index, entry) in arguments.buffers.enumerated() {
            switch entry {
            case nil: continue
            case .address(let address):
                guard let (buffer, offset) = buffer(at: address, "index \(index)") else { return false }
                encoder.setBuffer(buffer, offset: offset, index: index)
            case .resource(var number):
                guard isResident(number, "index \(index)") else { return false }
                encoder.setBytes(&number, length: MemoryLayout<UInt64>.size, index: index)
            }
        }
        for (index, number) in arguments.textures.enumerated() {
            guard let number else { continue }
            guard isResident(number, "texture \(index)") else { return false }
            encoder.setTexture(ResourceTable.shared.resource(number) as? SoftwareTexture, index: index)
        }
        for (index, number) in arguments.samplers.enumerated() {
            let sampler = number.flatMap { ResourceTable.shared.resource($0) as? SoftwareSampler }
            encoder.setSamplerState(sampler, index: index)
        }
        return true
    }

    private func buffer(at address: MTLGPUAddress, _ place: String) -> (SoftwareBuffer, offset: Int)? {
        if let found = residents.buffer(at: address) { return found }
        refuse(
            """
            the address at \(place) is in no buffer or heap of a residency set: add it to a set, commit the set, and \
            add the set to the queue or command buffer.
            """)
        return nil
    }

    private func isResident(_ number: UInt64, _ place: String) -> Bool {
        guard let resource = ResourceTable.shared.resource(number) as? any MTLResource else {
            refuse("the resource at \(place) is not one of this device, or was freed.")
            return false
        }
        return isResident(resource, place)
    }

    private func isResident(_ resource: any MTLResource, _ place: String) -> Bool {
        if residents.contains(resource) { return true }
        refuse(
            """
            the resource \(resource.label ?? "without a label") at \(place) is in no residency set: add it to a set, \
            commit the set, and add the set to the queue or command buffer.
            """)
        return false
    }

    /// If misuse does not end the process, the command buffer fails, because its results are missing.
    private func refuse(_ text: String) {
        let selector = "commit:count:"
        misuse("MTL4DebugCommandQueue", selector, text)
        commands.record(RefusedCommand(encoder: nil, selector: selector))
    }
}
