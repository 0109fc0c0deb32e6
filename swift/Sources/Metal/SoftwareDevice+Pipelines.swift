extension SoftwareDevice {
    func makeComputePipelineState(function computeFunction: any MTLFunction) throws -> any MTLComputePipelineState {
        try SoftwarePipeline(describe(computeFunction), options: [])
    }

    func makeComputePipelineState(
        function computeFunction: any MTLFunction, options: MTLPipelineOption,
        reflection: AutoreleasingUnsafeMutablePointer<MTLAutoreleasedComputePipelineReflection?>?
    ) throws -> any MTLComputePipelineState {
        try makeComputePipelineState(descriptor: describe(computeFunction), options: options, reflection: reflection)
    }

    func makeComputePipelineState(
        function computeFunction: any MTLFunction,
        completionHandler: @escaping MTLNewComputePipelineStateCompletionHandler
    ) {
        makeComputePipelineState(descriptor: describe(computeFunction), options: []) { state, _, error in
            completionHandler(state, error)
        }
    }

    func makeComputePipelineState(
        function computeFunction: any MTLFunction, options: MTLPipelineOption,
        completionHandler: @escaping MTLNewComputePipelineStateWithReflectionCompletionHandler
    ) {
        makeComputePipelineState(
            descriptor: describe(computeFunction), options: options, completionHandler: completionHandler)
    }

    func makeComputePipelineState(
        descriptor: MTLComputePipelineDescriptor, options: MTLPipelineOption,
        reflection: AutoreleasingUnsafeMutablePointer<MTLAutoreleasedComputePipelineReflection?>?
    ) throws -> any MTLComputePipelineState {
        let state = try SoftwarePipeline(descriptor, options: options)
        reflection?.pointee = state.reflection(options)
        return state
    }

    func makeComputePipelineState(
        descriptor: MTLComputePipelineDescriptor, options: MTLPipelineOption,
        completionHandler: @escaping MTLNewComputePipelineStateWithReflectionCompletionHandler
    ) {
        nonisolated(unsafe) let copy = descriptor.copy() as! MTLComputePipelineDescriptor
        compilations.async {
            do {
                let state = try SoftwarePipeline(copy, options: options)
                completionHandler(state, state.reflection(options), nil)
            } catch {
                completionHandler(nil, nil, error)
            }
        }
    }

    private func describe(_ function: any MTLFunction) -> MTLComputePipelineDescriptor {
        let descriptor = MTLComputePipelineDescriptor()
        descriptor.computeFunction = function
        return descriptor
    }
}
