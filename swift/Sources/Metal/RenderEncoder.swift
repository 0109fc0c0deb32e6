// Encoders of render passes. This device does not render: makeRenderCommandEncoder gives nil, with a note.

public protocol MTLRenderCommandEncoder: _MTLStoreActions {
    func setRenderPipelineState(_ pipelineState: any MTLRenderPipelineState)
    func setVertexBytes(_ bytes: UnsafeRawPointer, length: Int, index: Int)
    func setVertexBuffer(_ buffer: (any MTLBuffer)?, offset: Int, index: Int)
    func setVertexBufferOffset(_ offset: Int, index: Int)
    func setVertexBuffers(_ buffers: [(any MTLBuffer)?], offsets: [Int], range: Range<Int>)
    func setVertexBytes(_ bytes: UnsafeRawPointer, length: Int, attributeStride stride: Int, index: Int)
    func setVertexBuffer(_ buffer: (any MTLBuffer)?, offset: Int, attributeStride stride: Int, index: Int)
    func setVertexBufferOffset(offset: Int, attributeStride stride: Int, index: Int)
    func setVertexBuffers(
        _ buffers: [(any MTLBuffer)?], offsets: [Int], attributeStrides: [Int], range: Range<Int>)
    func setVertexTexture(_ texture: (any MTLTexture)?, index: Int)
    func setVertexTextures(_ textures: [(any MTLTexture)?], range: Range<Int>)
    func setVertexSamplerState(_ sampler: (any MTLSamplerState)?, index: Int)
    func setVertexSamplerState(
        _ sampler: (any MTLSamplerState)?, lodMinClamp: Float, lodMaxClamp: Float, index: Int)
    func setVertexSamplerStates(_ samplers: [(any MTLSamplerState)?], range: Range<Int>)
    func setVertexSamplerStates(
        _ samplers: [(any MTLSamplerState)?], lodMinClamps: [Float], lodMaxClamps: [Float], range: Range<Int>)
    func setVertexAccelerationStructure(
        _ accelerationStructure: (any MTLAccelerationStructure)?, bufferIndex: Int)
    func setVertexVisibleFunctionTable(
        _ functionTable: (any MTLVisibleFunctionTable)?, bufferIndex: Int)
    func setVertexVisibleFunctionTables(
        _ functionTables: [(any MTLVisibleFunctionTable)?], bufferRange: Range<Int>)
    func setVertexIntersectionFunctionTable(
        _ intersectionFunctionTable: (any MTLIntersectionFunctionTable)?, bufferIndex: Int)
    func setVertexIntersectionFunctionTables(
        _ intersectionFunctionTables: [(any MTLIntersectionFunctionTable)?], bufferRange: Range<Int>)
    func setFragmentBytes(_ bytes: UnsafeRawPointer, length: Int, index: Int)
    func setFragmentBuffer(_ buffer: (any MTLBuffer)?, offset: Int, index: Int)
    func setFragmentBufferOffset(_ offset: Int, index: Int)
    func setFragmentBuffers(_ buffers: [(any MTLBuffer)?], offsets: [Int], range: Range<Int>)
    func setFragmentTexture(_ texture: (any MTLTexture)?, index: Int)
    func setFragmentTextures(_ textures: [(any MTLTexture)?], range: Range<Int>)
    func setFragmentSamplerState(_ sampler: (any MTLSamplerState)?, index: Int)
    func setFragmentSamplerState(
        _ sampler: (any MTLSamplerState)?, lodMinClamp: Float, lodMaxClamp: Float, index: Int)
    func setFragmentSamplerStates(_ samplers: [(any MTLSamplerState)?], range: Range<Int>)
    func setFragmentSamplerStates(
        _ samplers: [(any MTLSamplerState)?], lodMinClamps: [Float], lodMaxClamps: [Float], range: Range<Int>)
    func setFragmentAccelerationStructure(
        _ accelerationStructure: (any MTLAccelerationStructure)?, bufferIndex: Int)
    func setFragmentVisibleFunctionTable(
        _ functionTable: (any MTLVisibleFunctionTable)?, bufferIndex: Int)
    func setFragmentVisibleFunctionTables(
        _ functionTables: [(any MTLVisibleFunctionTable)?], bufferRange: Range<Int>)
    func setFragmentIntersectionFunctionTable(
        _ intersectionFunctionTable: (any MTLIntersectionFunctionTable)?, bufferIndex: Int)
    func setFragmentIntersectionFunctionTables(
        _ intersectionFunctionTables: [(any MTLIntersectionFunctionTable)?], bufferRange: Range<Int>)
    func setTileBytes(_ bytes: UnsafeRawPointer, length: Int, index: Int)
    func setTileBuffer(_ buffer: (any MTLBuffer)?, offset: Int, index: Int)
    func setTileBufferOffset(_ offset: Int, index: Int)
    func setTileBuffers(_ buffers: [(any MTLBuffer)?], offsets: [Int], range: Range<Int>)
    func setTileTexture(_ texture: (any MTLTexture)?, index: Int)
    func setTileTextures(_ textures: [(any MTLTexture)?], range: Range<Int>)
    func setTileSamplerState(_ sampler: (any MTLSamplerState)?, index: Int)
    func setTileSamplerState(
        _ sampler: (any MTLSamplerState)?, lodMinClamp: Float, lodMaxClamp: Float, index: Int)
    func setTileSamplerStates(_ samplers: [(any MTLSamplerState)?], range: Range<Int>)
    func setTileSamplerStates(
        _ samplers: [(any MTLSamplerState)?], lodMinClamps: [Float], lodMaxClamps: [Float], range: Range<Int>)
    func setTileAccelerationStructure(
        _ accelerationStructure: (any MTLAccelerationStructure)?, bufferIndex: Int)
    func setTileVisibleFunctionTable(
        _ functionTable: (any MTLVisibleFunctionTable)?, bufferIndex: Int)
    func setTileVisibleFunctionTables(
        _ functionTables: [(any MTLVisibleFunctionTable)?], bufferRange: Range<Int>)
    func setTileIntersectionFunctionTable(
        _ intersectionFunctionTable: (any MTLIntersectionFunctionTable)?, bufferIndex: Int)
    func setTileIntersectionFunctionTables(
        _ intersectionFunctionTables: [(any MTLIntersectionFunctionTable)?], bufferRange: Range<Int>)
    func setObjectBytes(_ bytes: UnsafeRawPointer, length: Int, index: Int)
    func setObjectBuffer(_ buffer: (any MTLBuffer)?, offset: Int, index: Int)
    func setObjectBufferOffset(_ offset: Int, index: Int)
    func setObjectBuffers(_ buffers: [(any MTLBuffer)?], offsets: [Int], range: Range<Int>)
    func setObjectTexture(_ texture: (any MTLTexture)?, index: Int)
    func setObjectTextures(_ textures: [(any MTLTexture)?], range: Range<Int>)
    func setObjectSamplerState(_ sampler: (any MTLSamplerState)?, index: Int)
    func setObjectSamplerState(
        _ sampler: (any MTLSamplerState)?, lodMinClamp: Float, lodMaxClamp: Float, index: Int)
    func setObjectSamplerStates(_ samplers: [(any MTLSamplerState)?], range: Range<Int>)
    func setObjectSamplerStates(
        _ samplers: [(any MTLSamplerState)?], lodMinClamps: [Float], lodMaxClamps: [Float], range: Range<Int>)
    func setObjectThreadgroupMemoryLength(_ length: Int, index: Int)
    func setMeshBytes(_ bytes: UnsafeRawPointer, length: Int, index: Int)
    func setMeshBuffer(_ buffer: (any MTLBuffer)?, offset: Int, index: Int)
    func setMeshBufferOffset(_ offset: Int, index: Int)
    func setMeshBuffers(_ buffers: [(any MTLBuffer)?], offsets: [Int], range: Range<Int>)
    func setMeshTexture(_ texture: (any MTLTexture)?, index: Int)
    func setMeshTextures(_ textures: [(any MTLTexture)?], range: Range<Int>)
    func setMeshSamplerState(_ sampler: (any MTLSamplerState)?, index: Int)
    func setMeshSamplerState(
        _ sampler: (any MTLSamplerState)?, lodMinClamp: Float, lodMaxClamp: Float, index: Int)
    func setMeshSamplerStates(_ samplers: [(any MTLSamplerState)?], range: Range<Int>)
    func setMeshSamplerStates(
        _ samplers: [(any MTLSamplerState)?], lodMinClamps: [Float], lodMaxClamps: [Float], range: Range<Int>)

    func setViewport(_ viewport: MTLViewport)
    func setViewports(_ viewports: [MTLViewport])
    func setScissorRect(_ rect: MTLScissorRect)
    func setScissorRects(_ scissorRects: [MTLScissorRect])
    func setVertexAmplificationCount(
        _ count: Int, viewMappings: UnsafePointer<MTLVertexAmplificationViewMapping>?)
    func setFrontFacing(_ frontFacingWinding: MTLWinding)
    func setCullMode(_ cullMode: MTLCullMode)
    func setDepthClipMode(_ depthClipMode: MTLDepthClipMode)
    func setDepthBias(_ depthBias: Float, slopeScale: Float, clamp: Float)
    func setTriangleFillMode(_ fillMode: MTLTriangleFillMode)
    func setBlendColor(red: Float, green: Float, blue: Float, alpha: Float)
    func setDepthStencilState(_ depthStencilState: (any MTLDepthStencilState)?)
    func setStencilReferenceValue(_ referenceValue: UInt32)
    func setStencilReferenceValues(front frontReferenceValue: UInt32, back backReferenceValue: UInt32)
    func setVisibilityResultMode(_ mode: MTLVisibilityResultMode, offset: Int)
    func setTessellationFactorBuffer(_ buffer: (any MTLBuffer)?, offset: Int, instanceStride: Int)
    func setTessellationFactorScale(_ scale: Float)
    func setThreadgroupMemoryLength(_ length: Int, offset: Int, index: Int)
    var tileWidth: Int { get }
    var tileHeight: Int { get }

    func drawPrimitives(type primitiveType: MTLPrimitiveType, vertexStart: Int, vertexCount: Int)
    func drawPrimitives(
        type primitiveType: MTLPrimitiveType, vertexStart: Int, vertexCount: Int, instanceCount: Int)
    func drawPrimitives(
        type primitiveType: MTLPrimitiveType, vertexStart: Int, vertexCount: Int, instanceCount: Int,
        baseInstance: Int)
    func drawPrimitives(
        type primitiveType: MTLPrimitiveType, indirectBuffer: any MTLBuffer, indirectBufferOffset: Int)
    func drawIndexedPrimitives(
        type primitiveType: MTLPrimitiveType, indexCount: Int, indexType: MTLIndexType, indexBuffer: any MTLBuffer,
        indexBufferOffset: Int)
    func drawIndexedPrimitives(
        type primitiveType: MTLPrimitiveType, indexCount: Int, indexType: MTLIndexType, indexBuffer: any MTLBuffer,
        indexBufferOffset: Int, instanceCount: Int)
    func drawIndexedPrimitives(
        type primitiveType: MTLPrimitiveType, indexCount: Int, indexType: MTLIndexType, indexBuffer: any MTLBuffer,
        indexBufferOffset: Int, instanceCount: Int, baseVertex: Int, baseInstance: Int)
    func drawIndexedPrimitives(
        type primitiveType: MTLPrimitiveType, indexType: MTLIndexType, indexBuffer: any MTLBuffer,
        indexBufferOffset: Int, indirectBuffer: any MTLBuffer, indirectBufferOffset: Int)
    func drawPatches(
        numberOfPatchControlPoints: Int, patchStart: Int, patchCount: Int, patchIndexBuffer: (any MTLBuffer)?,
        patchIndexBufferOffset: Int, instanceCount: Int, baseInstance: Int)
    func drawPatches(
        numberOfPatchControlPoints: Int, patchIndexBuffer: (any MTLBuffer)?, patchIndexBufferOffset: Int,
        indirectBuffer: any MTLBuffer, indirectBufferOffset: Int)
    func drawIndexedPatches(
        numberOfPatchControlPoints: Int, patchStart: Int, patchCount: Int, patchIndexBuffer: (any MTLBuffer)?,
        patchIndexBufferOffset: Int, controlPointIndexBuffer: any MTLBuffer, controlPointIndexBufferOffset: Int,
        instanceCount: Int, baseInstance: Int)
    func drawIndexedPatches(
        numberOfPatchControlPoints: Int, patchIndexBuffer: (any MTLBuffer)?, patchIndexBufferOffset: Int,
        controlPointIndexBuffer: any MTLBuffer, controlPointIndexBufferOffset: Int, indirectBuffer: any MTLBuffer,
        indirectBufferOffset: Int)
    func drawMeshThreadgroups(
        _ threadgroupsPerGrid: MTLSize, threadsPerObjectThreadgroup: MTLSize, threadsPerMeshThreadgroup: MTLSize)
    func drawMeshThreads(
        _ threadsPerGrid: MTLSize, threadsPerObjectThreadgroup: MTLSize, threadsPerMeshThreadgroup: MTLSize)
    func drawMeshThreadgroups(
        indirectBuffer: any MTLBuffer, indirectBufferOffset: Int, threadsPerObjectThreadgroup: MTLSize,
        threadsPerMeshThreadgroup: MTLSize)
    func dispatchThreadsPerTile(_ threadsPerTile: MTLSize)
    func executeCommandsInBuffer(
        _ indirectCommandBuffer: any MTLIndirectCommandBuffer, range executionRange: Range<Int>)
    func executeCommandsInBuffer(
        _ indirectCommandbuffer: any MTLIndirectCommandBuffer, indirectBuffer: any MTLBuffer, offset: Int)

    func updateFence(_ fence: any MTLFence, after stages: MTLRenderStages)
    func waitForFence(_ fence: any MTLFence, before stages: MTLRenderStages)
    func useResource(_ resource: any MTLResource, usage: MTLResourceUsage)
    func useResource(_ resource: any MTLResource, usage: MTLResourceUsage, stages: MTLRenderStages)
    func useResources(_ resources: [any MTLResource], usage: MTLResourceUsage)
    func useResources(_ resources: [any MTLResource], usage: MTLResourceUsage, stages: MTLRenderStages)
    func useHeap(_ heap: any MTLHeap)
    func useHeap(_ heap: any MTLHeap, stages: MTLRenderStages)
    func useHeaps(_ heaps: [any MTLHeap])
    func useHeaps(_ heaps: [any MTLHeap], stages: MTLRenderStages)
    func memoryBarrier(scope: MTLBarrierScope, after: MTLRenderStages, before: MTLRenderStages)
    func memoryBarrier(resources: [any MTLResource], after: MTLRenderStages, before: MTLRenderStages)
    func textureBarrier()
    func sampleCounters(sampleBuffer: any MTLCounterSampleBuffer, sampleIndex: Int, barrier: Bool)
}

/// Operations on attachments that both kinds of render encoders perform when they end.
public protocol _MTLStoreActions: MTLCommandEncoder {
    func setColorStoreAction(_ storeAction: MTLStoreAction, index colorAttachmentIndex: Int)
    func setColorStoreActionOptions(_ storeActionOptions: MTLStoreActionOptions, index colorAttachmentIndex: Int)
    func setDepthStoreAction(_ storeAction: MTLStoreAction)
    func setDepthStoreActionOptions(_ storeActionOptions: MTLStoreActionOptions)
    func setStencilStoreAction(_ storeAction: MTLStoreAction)
    func setStencilStoreActionOptions(_ storeActionOptions: MTLStoreActionOptions)
}

public protocol MTLParallelRenderCommandEncoder: _MTLStoreActions {
    func makeRenderCommandEncoder() -> (any MTLRenderCommandEncoder)?
}

extension SoftwareCommandBuffer {
    func makeRenderCommandEncoder(descriptor renderPassDescriptor: MTLRenderPassDescriptor)
        -> (any MTLRenderCommandEncoder)?
    {
        note("\(SoftwareDevice.shared.name) does not render: makeRenderCommandEncoder gives nil")
        return nil
    }

    func makeParallelRenderCommandEncoder(descriptor renderPassDescriptor: MTLRenderPassDescriptor)
        -> (any MTLParallelRenderCommandEncoder)?
    {
        note("\(SoftwareDevice.shared.name) does not render: makeParallelRenderCommandEncoder gives nil")
        return nil
    }
}
