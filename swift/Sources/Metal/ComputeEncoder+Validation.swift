/// The checks of Apple's validation layer for compute encoders, with its messages where they are known.
extension SoftwareComputeEncoder {
    func isBufferIndex(_ index: Int, _ selector: String) -> Bool {
        (0..<SoftwareDevice.maxBuffers).contains(index)
            || refuse(
                debugName, selector,
                "index(\(index)) must be < \(SoftwareDevice.maxBuffers), the number of buffer arguments.")
    }

    func isConstantLength(_ length: Int, _ selector: String) -> Bool {
        (length > 0 || refuse(debugName, selector, "length(\(length)) must be > 0."))
            && (length <= SoftwareDevice.maxConstantBytes
                || refuse(
                    debugName, selector,
                    """
                    length(\(length)) must be <= \(SoftwareDevice.maxConstantBytes); put more into a buffer.
                    """))
    }

    func isOffset(_ offset: Int, in target: SoftwareBuffer, _ selector: String) -> Bool {
        offset >= 0 && offset < target.length
            || refuse(debugName, selector, "offset(\(offset)) must be < [buffer length](\(target.length)).")
    }

    func isIndirectOffset(_ offset: Int, in target: SoftwareBuffer, _ selector: String) -> Bool {
        let size = 12  // three 32-bit counts
        return
            (offset >= 0 && offset % 4 == 0
            || refuse(debugName, selector, "indirectBufferOffset(\(offset)) must be a multiple of 4."))
            && (offset + size <= target.length
                || refuse(
                    debugName, selector,
                    """
                    (indirectBufferOffset(\(offset)) + \(size))(\(offset + size)) must be <= [indirectBuffer \
                    length](\(target.length)).
                    """))
    }

    func isThreadgroupLength(_ length: Int, index: Int, _ selector: String) -> Bool {
        let limit = SoftwareDevice.maxThreadgroupMemoryLength
        return
            ((0..<SoftwareDevice.maxBuffers).contains(index)
            || refuse(
                debugName, selector,
                """
                index(\(index)) must be < \(SoftwareDevice.maxBuffers), the number of threadgroup memory arguments.
                """))
            && (length >= 0 && length % 16 == 0
                || refuse(debugName, selector, "length(\(length)) must be a multiple of 16 bytes."))
            && (length <= limit || refuse(debugName, selector, "length(\(length)) must be <= \(limit)."))
    }

    /// Returns whether there is at least one thread in each dimension, and no more than a `uint` can count: kernels get
    /// their position in 32 bits.
    func isGrid(_ size: MTLSize, of parts: MTLSize, named name: String, _ selector: String) -> Bool {
        guard encodes(selector), isPositive(size, named: name, selector) else { return false }
        let threads = size * parts, limit = Int(UInt32.max)
        return max(threads.width, threads.height, threads.depth) <= limit
            || refuse(
                debugName, selector,
                """
                \(name) (\(size.width), \(size.height), \(size.depth)) must give <= \(limit) threads in each dimension.
                """)
    }

    /// Returns the pipeline if everything that it needs is bound and it can run the threadgroup.
    func canDispatch(_ threads: MTLSize, _ selector: String) -> SoftwarePipeline? {
        guard encodes(selector) else { return nil }
        guard let pipeline else {
            misuse(debugName, selector, "No pipeline state is set: call setComputePipelineState before a dispatch.")
            return nil
        }
        guard isThreadgroup(threads, for: pipeline, selector) else { return nil }
        for binding in pipeline.bindings where binding.isUsed && !isBound(binding, pipeline, selector) { return nil }
        return fitsThreadgroupMemory(pipeline, selector) ? pipeline : nil
    }

    private func isPositive(_ size: MTLSize, named name: String, _ selector: String) -> Bool {
        if min(size.width, size.height, size.depth) > 0 { return true }
        return [("width", size.width), ("height", size.height), ("depth", size.depth)].allSatisfy { part, value in
            value > 0 || refuse(debugName, selector, "\(name).\(part)(\(value)) must be >= 1.")
        }
    }

    private func isThreadgroup(_ threads: MTLSize, for pipeline: SoftwarePipeline, _ selector: String) -> Bool {
        guard isPositive(threads, named: "threadsPerThreadgroup", selector) else { return false }
        let product = threads.width.multipliedReportingOverflow(by: threads.height).partialValue
            .multipliedReportingOverflow(by: threads.depth).partialValue
        // A function, because making the text takes longer than all checks of a dispatch.
        func shown() -> String {
            """
            (threadsPerThreadgroup.width(\(threads.width)) * threadsPerThreadgroup.height(\(threads.height)) * \
            threadsPerThreadgroup.depth(\(threads.depth)))(\(product)) must be
            """
        }
        func isWithin(_ limit: Int, of owner: String) -> Bool {
            max(product, threads.width, threads.height, threads.depth) <= limit
                || refuse(debugName, selector, "\(shown()) <= \(limit). (\(owner) threadgroup size limit)")
        }
        guard isWithin(SoftwareDevice.maxThreadsPerThreadgroup, of: "device"),
            isWithin(pipeline.maxTotalThreadsPerThreadgroup, of: "kernel")
        else { return false }
        if let required = pipeline.requiredThreadsPerThreadgroup {
            guard
                (threads.width, threads.height, threads.depth) == (required.width, required.height, required.depth)
                    || refuse(
                        debugName, selector,
                        """
                        threadsPerThreadgroup must be the pipeline's requiredThreadsPerThreadgroup \
                        (\(required.width), \(required.height), \(required.depth)).
                        """)
            else { return false }
        }
        return !pipeline.wantsWholeSIMDGroups || product % pipeline.threadExecutionWidth == 0
            || refuse(
                debugName, selector,
                """
                \(shown()) a multiple of \(pipeline.threadExecutionWidth), as \
                threadGroupSizeIsMultipleOfThreadExecutionWidth promised.
                """)
    }

    private func isBound(_ argument: SoftwareBinding, _ pipeline: SoftwarePipeline, _ selector: String) -> Bool {
        var function: String { "Compute Function(\(pipeline.function.name))" }
        if argument.type == .threadgroupMemory {
            return threadgroupLengths[argument.index] > 0
                || refuse(
                    debugName, selector,
                    """
                    \(function): missing threadgroup memory binding at index \(argument.index) for \
                    \(argument.name)[0]: \
                    call setThreadgroupMemoryLength before the dispatch.
                    """)
        }
        if argument.type == .texture { return hasTextures(argument, pipeline, selector) }
        if argument.type == .sampler { return hasSamplers(argument, pipeline, selector) }
        switch bindings[argument.index] {
        case .none:
            return refuse(
                debugName, selector,
                "\(function): missing Buffer binding at index \(argument.index) for \(argument.name)[0].")
        case .bytes where argument.access != .readOnly, .staged where argument.access != .readOnly:
            // Without validation, a Mac runs the kernel, which writes to a copy that is discarded.
            misuse(
                debugName, selector,
                """
                \(function): Bytes are being bound at index \(argument.index) to a shader argument (\(argument.name)) \
                with write access enabled.
                """)
            return isLongEnough(argument, function, selector)
        case .buffer(_, let offset):
            guard isAligned(offset, for: argument, function, selector) else { return false }
            fallthrough
        case .bytes, .staged:
            return isLongEnough(argument, function, selector)
        }
    }

    private func isAligned(
        _ offset: Int, for argument: SoftwareBinding, _ function: @autoclosure () -> String, _ selector: String
    ) -> Bool {
        let alignment = argument.offsetAlignment
        return offset % alignment == 0
            || refuse(
                debugName, selector,
                """
                \(function()): the offset(\(offset)) of argument \(argument.name)[0] at index \(argument.index) must \
                be a multiple of \(alignment).
                """)
    }

    /// A reference reads a whole element. For a pointer, only the kernel knows how much it reads.
    private func isLongEnough(
        _ argument: SoftwareBinding, _ function: @autoclosure () -> String, _ selector: String
    ) -> Bool {
        guard argument.isReference else { return true }
        let length = bindings[argument.index].length
        return length >= argument.elementSize
            || refuse(
                debugName, selector,
                """
                \(function()): argument \(argument.name)[0] from buffer(\(argument.index)) with \
                offset(\(offset(at: argument.index))) and \
                length(\(length)) has space for \(length) bytes, but argument has a length(\(argument.elementSize)).
                """)
    }

    private func offset(at index: Int) -> Int {
        if case .buffer(_, let offset) = bindings[index] { return offset }
        return 0
    }

    /// Lengths remain set until they are changed, and count even if the pipeline has no such argument.
    private func fitsThreadgroupMemory(_ pipeline: SoftwarePipeline, _ selector: String) -> Bool {
        let dynamic = threadgroupLengths.reduce(0, +)
        let total = pipeline.staticThreadgroupMemoryLength + dynamic
        let limit = SoftwareDevice.maxThreadgroupMemoryLength
        return total <= limit
            || refuse(
                debugName, selector,
                """
                Compute Function(\(pipeline.function.name)): (static(\(pipeline.staticThreadgroupMemoryLength)) + \
                setThreadgroupMemoryLength(\(dynamic)))(\(total)) threadgroup memory must be <= \(limit).
                """)
    }

    func refuseStride(_ selector: String) {
        misuse(
            debugName, selector,
            """
            attribute strides need a pipeline with a stage-in descriptor, which this device has not; bind without a \
            stride.
            """)
    }
}
