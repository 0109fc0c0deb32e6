public protocol MTLComputeCommandEncoder: MTLCommandEncoder {
    var dispatchType: MTLDispatchType { get }
    func setComputePipelineState(_ state: any MTLComputePipelineState)
    func setBytes(_ bytes: UnsafeRawPointer, length: Int, index: Int)
    func setBytes(_ bytes: UnsafeRawPointer, length: Int, attributeStride stride: Int, index: Int)
    func setBuffer(_ buffer: (any MTLBuffer)?, offset: Int, index: Int)
    func setBuffer(_ buffer: any MTLBuffer, offset: Int, attributeStride stride: Int, index: Int)
    func setBuffers(_ buffers: [(any MTLBuffer)?], offsets: [Int], range: Range<Int>)
    func setBuffers(_ buffers: [(any MTLBuffer)?], offsets: [Int], attributeStrides: [Int], range: Range<Int>)
    func setBufferOffset(_ offset: Int, index: Int)
    func setBufferOffset(offset: Int, attributeStride stride: Int, index: Int)
    func setTexture(_ texture: (any MTLTexture)?, index: Int)
    func setTextures(_ textures: [(any MTLTexture)?], range: Range<Int>)
    func setSamplerState(_ sampler: (any MTLSamplerState)?, index: Int)
    func setSamplerState(_ sampler: (any MTLSamplerState)?, lodMinClamp: Float, lodMaxClamp: Float, index: Int)
    func setSamplerStates(_ samplers: [(any MTLSamplerState)?], range: Range<Int>)
    func setSamplerStates(
        _ samplers: [(any MTLSamplerState)?], lodMinClamps: [Float], lodMaxClamps: [Float], range: Range<Int>)
    func setThreadgroupMemoryLength(_ length: Int, index: Int)
    func dispatchThreadgroups(_ threadgroupsPerGrid: MTLSize, threadsPerThreadgroup: MTLSize)
    func dispatchThreadgroups(
        indirectBuffer: any MTLBuffer, indirectBufferOffset: Int, threadsPerThreadgroup: MTLSize)
    func dispatchThreads(_ threadsPerGrid: MTLSize, threadsPerThreadgroup: MTLSize)
    func executeCommandsInBuffer(
        _ indirectCommandBuffer: any MTLIndirectCommandBuffer, range executionRange: Range<Int>)
    func executeCommandsInBuffer(
        _ indirectCommandbuffer: any MTLIndirectCommandBuffer, indirectBuffer: any MTLBuffer, offset: Int)
    func sampleCounters(sampleBuffer: any MTLCounterSampleBuffer, sampleIndex: Int, barrier: Bool)
    func setStageInRegion(_ region: MTLRegion)
    func setStageInRegionWithIndirectBuffer(_ indirectBuffer: any MTLBuffer, indirectBufferOffset: Int)
    func setImageblockWidth(_ width: Int, height: Int)
    func setAccelerationStructure(_ accelerationStructure: (any MTLAccelerationStructure)?, bufferIndex: Int)
    func setVisibleFunctionTable(_ visibleFunctionTable: (any MTLVisibleFunctionTable)?, bufferIndex: Int)
    func setVisibleFunctionTables(
        _ visibleFunctionTables: [(any MTLVisibleFunctionTable)?], bufferRange: Range<Int>)
    func setIntersectionFunctionTable(
        _ intersectionFunctionTable: (any MTLIntersectionFunctionTable)?, bufferIndex: Int)
    func setIntersectionFunctionTables(
        _ intersectionFunctionTables: [(any MTLIntersectionFunctionTable)?], bufferRange: Range<Int>)
    func updateFence(_ fence: any MTLFence)
    func waitForFence(_ fence: any MTLFence)
    func useResource(_ resource: any MTLResource, usage: MTLResourceUsage)
    func useResources(_ resources: [any MTLResource], usage: MTLResourceUsage)
    func useHeap(_ heap: any MTLHeap)
    func useHeaps(_ heaps: [any MTLHeap])
    func memoryBarrier(scope: MTLBarrierScope)
    func memoryBarrier(resources: [any MTLResource])
}
