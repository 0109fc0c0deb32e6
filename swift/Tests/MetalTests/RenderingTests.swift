import Metal
import XCTest

/// Rendering and ray tracing: programs compile, descriptors keep and copy their properties, and each use is rejected.
final class RenderingTests: MetalTestCase {
    func testDescriptorsOfPipelinesAreCopied() throws {
        let descriptor = MTLRenderPipelineDescriptor()
        descriptor.label = "a"
        descriptor.colorAttachments[1].pixelFormat = .bgra8Unorm
        descriptor.colorAttachments[1].destinationRGBBlendFactor = .oneMinusSourceAlpha
        descriptor.tessellationPartitionMode = .fractionalOdd
        descriptor.vertexBuffers[2].mutability = .immutable
        let layout = MTLVertexDescriptor()
        layout.attributes[0].format = .float3
        layout.layouts[0].stride = 12
        descriptor.vertexDescriptor = layout
        let copy = try XCTUnwrap(descriptor.copy() as? MTLRenderPipelineDescriptor)
        descriptor.reset()
        layout.reset()
        XCTAssertNil(descriptor.label)
        XCTAssertEqual(descriptor.colorAttachments[1].pixelFormat, .invalid)
        XCTAssertEqual(layout.attributes[0].format, .invalid)
        XCTAssertEqual(copy.label, "a")
        XCTAssertEqual(copy.colorAttachments[1].pixelFormat, .bgra8Unorm)
        XCTAssertEqual(copy.colorAttachments[1].destinationRGBBlendFactor, .oneMinusSourceAlpha)
        XCTAssertEqual(copy.tessellationPartitionMode, .fractionalOdd)
        XCTAssertEqual(copy.vertexBuffers[2].mutability, .immutable)
        XCTAssertEqual(copy.vertexDescriptor?.attributes[0].format, .float3)
        XCTAssertEqual(copy.vertexDescriptor?.layouts[0].stride, 12)
    }

    func testDescriptorsOfPassesAreCopied() throws {
        let pass = MTLRenderPassDescriptor()
        pass.colorAttachments[0].loadAction = .clear
        pass.colorAttachments[0].clearColor = MTLClearColorMake(1, 0.5, 0.25, 1)
        pass.depthAttachment.clearDepth = 0.5
        pass.stencilAttachment.clearStencil = 7
        pass.setSamplePositions([MTLSamplePositionMake(0.25, 0.75)])
        let copy = try XCTUnwrap(pass.copy() as? MTLRenderPassDescriptor)
        pass.colorAttachments[0].loadAction = .load
        pass.depthAttachment.clearDepth = 1
        XCTAssertEqual(copy.colorAttachments[0].loadAction, .clear)
        XCTAssertEqual(copy.colorAttachments[0].clearColor.green, 0.5)
        XCTAssertEqual(copy.depthAttachment.clearDepth, 0.5)
        XCTAssertEqual(copy.stencilAttachment.clearStencil, 7)
        XCTAssertEqual(copy.getSamplePositions().first?.y, 0.75)
        let depth = MTLDepthStencilDescriptor()
        depth.frontFaceStencil.depthFailureOperation = .invert
        let kept = try XCTUnwrap(depth.copy() as? MTLDepthStencilDescriptor)
        depth.frontFaceStencil.depthFailureOperation = .zero
        XCTAssertEqual(kept.frontFaceStencil.depthFailureOperation, .invert)
    }

    func testEachUseIsRefused() throws {
        let commands = queue.makeCommandBuffer()!
        XCTAssertThrowsError(try device.makeRenderPipelineState(descriptor: MTLRenderPipelineDescriptor())) {
            XCTAssertTrue("\($0)".contains("does not render"), "\($0)")
        }
        XCTAssertThrowsError(
            try device.makeRenderPipelineState(descriptor: MTLMeshRenderPipelineDescriptor(), options: []))
        XCTAssertNil(commands.makeRenderCommandEncoder(descriptor: MTLRenderPassDescriptor()))
        XCTAssertNil(commands.makeParallelRenderCommandEncoder(descriptor: MTLRenderPassDescriptor()))
        XCTAssertNil(commands.makeAccelerationStructureCommandEncoder())
        XCTAssertNil(commands.makeResourceStateCommandEncoder())
        XCTAssertNil(device.makeDepthStencilState(descriptor: MTLDepthStencilDescriptor()))
        XCTAssertNil(device.makeRasterizationRateMap(descriptor: MTLRasterizationRateMapDescriptor()))
        XCTAssertNil(device.makeAccelerationStructure(size: 256))
        XCTAssertFalse(device.supportsRasterizationRateMap(layerCount: 1))
        let encoder = commands.makeComputeCommandEncoder()!
        assertMisuse("does not trace rays") { encoder.setAccelerationStructure(nil, bufferIndex: 0) }
        assertMisuse("through pointers") { encoder.setVisibleFunctionTable(nil, bufferIndex: 0) }
        assertMisuse("imageblocks") { encoder.setImageblockWidth(8, height: 8) }
        encoder.endEncoding()
        commands.commit()
        commands.waitUntilCompleted()
    }

    /// The log of a command buffer is a sequence without entries.
    func testLogsAreEmpty() {
        let commands = queue.makeCommandBuffer()!
        var entries = 0
        for entry in commands.logs where entry.debugLocation == nil { entries += 1 }
        XCTAssertEqual(entries, 0)
    }
}
