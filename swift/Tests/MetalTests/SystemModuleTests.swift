import CoreVideo
import IOKit
import Metal
import MetalPerformanceShaders
import OrchardDarwin
import XCTest
import simd

/// The modules named after Apple's system modules that compute packages use.
final class SystemModuleTests: MetalTestCase {
    func testTheRegistryHasTheDevice() throws {
        var iterator: io_iterator_t = 0
        let matching = IOServiceMatching("AGXAccelerator")
        XCTAssertEqual(IOServiceGetMatchingServices(kIOMainPortDefault, matching, &iterator), kIOReturnSuccess)
        let entry = IOIteratorNext(iterator)
        XCTAssertNotEqual(Int64(entry), Int64(MACH_PORT_NULL))
        XCTAssertEqual(IOIteratorNext(iterator), IO_OBJECT_NULL)
        XCTAssertEqual(
            [IOObjectRelease(iterator), IOObjectRelease(iterator)], [kIOReturnSuccess, kIOReturnBadArgument])
        let property = IORegistryEntrySearchCFProperty(entry, kIOServicePlane, "gpu-core-count" as CFString, nil, 0)
        let number = property as! CFNumber
        XCTAssertEqual(CFNumberGetType(number), .sInt64Type)
        var cores: Int64 = 0
        XCTAssertTrue(CFNumberGetValue(number, .sInt64Type, &cores))
        XCTAssertEqual(cores, 8)
        XCTAssertNil(IORegistryEntrySearchCFProperty(entry, kIOServicePlane, "no-such-property", nil, 0))
        XCTAssertEqual(
            IOServiceGetMatchingService(kIOMainPortDefault, IOServiceMatching("IOUSBDevice")), IO_OBJECT_NULL)
    }

    func testNumbersAreStoredInTheirTypes() {
        for number in [NSNumber(value: Int8(-3)), NSNumber(value: Int64.min), NSNumber(value: UInt16(9))] {
            XCTAssertEqual(CFNumberGetType(number), .sInt64Type)
        }
        for number in [NSNumber(value: 0.25), NSNumber(value: Float(0.5))] {
            XCTAssertEqual(CFNumberGetType(number), .float64Type)
        }
        var small: Int16 = 0
        XCTAssertTrue(CFNumberGetValue(NSNumber(value: -300), .sInt16Type, &small))
        XCTAssertEqual(small, -300)
        XCTAssertFalse(CFNumberGetValue(NSNumber(value: 70000), .sInt16Type, &small))
    }

    /// A kernel's result appears in the pixel buffer, and rows that the kernel does not reach do not change.
    func testATextureSharesAPixelBuffer() throws {
        let (width, height) = (Int.random(in: 1...70), Int.random(in: 2...9))
        var made: CVPixelBuffer?
        XCTAssertEqual(
            CVPixelBufferCreate(nil, width, height, kCVPixelFormatType_OneComponent32Float, nil, &made),
            kCVReturnSuccess)
        let pixels = try XCTUnwrap(made)
        var cache: CVMetalTextureCache?
        XCTAssertEqual(CVMetalTextureCacheCreate(nil, nil, device, nil, &cache), kCVReturnSuccess)
        var texture: CVMetalTexture?
        func create(_ format: MTLPixelFormat, _ height: Int, plane: Int = 0) -> CVReturn {
            CVMetalTextureCacheCreateTextureFromImage(
                nil, cache!, pixels, [kCVMetalTextureUsage: MTLTextureUsage.shaderWrite.rawValue], format, width,
                height,
                plane, &texture)
        }
        XCTAssertEqual(create(.rgba32Float, height), kCVReturnInvalidPixelFormat)
        XCTAssertEqual(create(.r32Float, height + 1), kCVReturnInvalidSize)
        XCTAssertEqual(create(.r32Float, height, plane: 1), kCVReturnInvalidArgument)
        XCTAssertNil(texture)
        XCTAssertEqual(create(.r32Float, height - 1), kCVReturnSuccess)
        let target = try XCTUnwrap(CVMetalTextureGetTexture(try XCTUnwrap(texture)))
        XCTAssertNil(CVMetalTextureGetTexture(pixels))

        let source = """
            #include <metal_stdlib>
            kernel void fill(metal::texture2d<float, metal::access::write> t [[texture(0)]], \
            uint2 i [[thread_position_in_grid]]) { t.write(float4(i.x + 100 * i.y), i); }
            """
        let function = try XCTUnwrap(device.makeLibrary(source: source, options: nil).makeFunction(name: "fill"))
        let state = try device.makeComputePipelineState(function: function)
        run { encoder in
            encoder.setComputePipelineState(state)
            encoder.setTexture(target, index: 0)
            encoder.dispatchThreads(
                MTLSizeMake(width, height - 1, 1), threadsPerThreadgroup: MTLSizeMake(width, 1, 1))
        }
        CVPixelBufferLockBaseAddress(pixels, .readOnly)
        let base = try XCTUnwrap(CVPixelBufferGetBaseAddress(pixels))
        for y in 0..<height {
            for x in 0..<width {
                let value = (base + y * CVPixelBufferGetBytesPerRow(pixels)).load(fromByteOffset: 4 * x, as: Float.self)
                XCTAssertEqual(value, y < height - 1 ? Float(x + 100 * y) : 0)
            }
        }
        CVPixelBufferUnlockBaseAddress(pixels, .readOnly)
    }

    func testMatricesOfPerformanceShadersDescribeBuffers() {
        let data = buffer([1, 2, 3, 4])
        let matrix = MPSMatrix(
            buffer: data, descriptor: MPSMatrixDescriptor(rows: 2, columns: 2, rowBytes: 8, dataType: .float32))
        XCTAssertEqual(
            [matrix.rows, matrix.columns, matrix.matrices, matrix.matrixBytes, matrix.offset], [2, 2, 1, 16, 0])
        XCTAssertTrue(matrix.data === data)
        XCTAssertEqual(MPSMatrixDescriptor.rowBytes(forColumns: 5, dataType: .float16), 16)
        XCTAssertEqual(MPSVectorDescriptor.vectorBytes(forLength: 5, dataType: .float32), 32)
    }

    func testMemoryFunctions() {
        for count in (0..<8).map({ _ in Int.random(in: 0...40) }) {
            let pattern: [UInt8] = (0..<16).map { _ in .random(in: 1...255) }
            for (size, fill) in [(4, memset_pattern4), (8, memset_pattern8), (16, memset_pattern16)] {
                var bytes = [UInt8](repeating: 0, count: 48)
                fill(&bytes, pattern, count)
                XCTAssertEqual(bytes, (0..<48).map { $0 < count ? pattern[$0 % size] : 0 })
            }
            var bytes = [UInt8](repeating: 1, count: 48)
            XCTAssertEqual(memset_s(&bytes, 20, 7, count), count > 20 ? EOVERFLOW : 0)
            XCTAssertEqual(bytes, (0..<48).map { $0 < min(count, 20) ? 7 : 1 })
        }
        XCTAssertTrue(Int.self === Int.self && Int.self !== Float.self)
        XCTAssertEqual(NSEC_PER_SEC / NSEC_PER_MSEC, 1000)
    }

    func testMemoryPressureIsNeverReported() {
        let source = DispatchSource.makeMemoryPressureSource(eventMask: [.warning, .critical], queue: .global())
        let cancelled = expectation(description: "cancelled")
        source.setEventHandler { XCTFail("there is no pressure") }
        source.setCancelHandler { cancelled.fulfill() }
        source.resume()
        XCTAssertEqual(source.data, [])
        source.cancel()
        wait(for: [cancelled], timeout: 60)
    }

    /// Each vector function, compared with the scalar function in double precision.
    func testElementaryFunctions() {
        typealias Row = (
            Range<Double>, (SIMD3<Float>) -> SIMD3<Float>, (SIMD4<Double>) -> SIMD4<Double>, (Double) -> Double
        )
        var rows: [Row] = []
        func add(
            _ range: Range<Double>, _ single: @escaping (SIMD3<Float>) -> SIMD3<Float>,
            _ double: @escaping (SIMD4<Double>) -> SIMD4<Double>, _ oracle: @escaping (Double) -> Double
        ) { rows.append((range, single, double, oracle)) }
        add(-9..<9, __tg_sin, __tg_sin, Foundation.sin)
        add(-9..<9, __tg_cos, __tg_cos, Foundation.cos)
        add(-1..<1, __tg_tan, __tg_tan, Foundation.tan)
        add(-1..<1, __tg_asin, __tg_asin, Foundation.asin)
        add(-1..<1, __tg_acos, __tg_acos, Foundation.acos)
        add(-9..<9, __tg_atan, __tg_atan, Foundation.atan)
        add(-3..<3, __tg_sinh, __tg_sinh, Foundation.sinh)
        add(-3..<3, __tg_cosh, __tg_cosh, Foundation.cosh)
        add(-3..<3, __tg_tanh, __tg_tanh, Foundation.tanh)
        add(-9..<9, __tg_asinh, __tg_asinh, Foundation.asinh)
        add(1..<9, __tg_acosh, __tg_acosh, Foundation.acosh)
        add(-0.9..<0.9, __tg_atanh, __tg_atanh, Foundation.atanh)
        add(-5..<5, __tg_exp, __tg_exp, Foundation.exp)
        add(-5..<5, __tg_exp2, __tg_exp2, Foundation.exp2)
        add(-2..<2, __tg_expm1, __tg_expm1, Foundation.expm1)
        add(0.1..<9, __tg_log, __tg_log, Foundation.log)
        add(0.1..<9, __tg_log2, __tg_log2, Foundation.log2)
        add(0.1..<9, __tg_log10, __tg_log10, Foundation.log10)
        add(0..<9, __tg_log1p, __tg_log1p, Foundation.log1p)
        add(0..<9, __tg_sqrt, __tg_sqrt, Foundation.sqrt)
        add(-9..<9, __tg_cbrt, __tg_cbrt, Foundation.cbrt)
        add(-9..<9, __tg_trunc, __tg_trunc, Foundation.trunc)
        add(-9..<9, __tg_rint, __tg_rint, Foundation.rint)
        for (range, single, double, oracle) in rows {
            let x = SIMD3<Float>.random(in: Float(range.lowerBound)..<Float(range.upperBound))
            let y = SIMD4<Double>.random(in: range), (a, b) = (single(x), double(y))
            for i in 0..<3 {
                let expected = oracle(Double(x[i]))
                XCTAssertEqual(Double(a[i]), expected, accuracy: 3e-7 * max(1, expected.magnitude))
            }
            for i in 0..<4 { XCTAssertEqual(b[i], oracle(y[i])) }
        }
        let x = SIMD2<Float>.random(in: 0.5..<4), y = SIMD2<Float>.random(in: -3..<3)
        let powers: SIMD2<Float> = __tg_pow(x, y), rests: SIMD2<Float> = __tg_fmod(x, y)
        for i in 0..<2 {
            let expected = Foundation.pow(Double(x[i]), Double(y[i]))
            XCTAssertEqual(Double(powers[i]), expected, accuracy: 1e-5 * expected)
            XCTAssertEqual(rests[i], x[i].truncatingRemainder(dividingBy: y[i]))
        }
        let angles: SIMD2<Float> = __tg_atan2(y, x)
        XCTAssertEqual(Double(angles[0]), Foundation.atan2(Double(y[0]), Double(x[0])), accuracy: 1e-6)
        XCTAssertEqual(__tg_fma(x, y, x), SIMD2((0..<2).map { x[$0].addingProduct(x[$0], y[$0]) }))
        XCTAssertEqual(__tg_copysign(x, y), x.replacing(with: -x, where: y .< 0))
    }
}
