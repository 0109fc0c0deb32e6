// Adds two arrays, in the manner of Apple's "Performing Calculations on a GPU". Its kernel lies beside it.
import Accelerate
import Darwin
import Metal
import OSLog
import QuartzCore
import simd

let device = MTLCreateSystemDefaultDevice()!
let adder = Adder(device: device)
let start = CACurrentMediaTime()
let wrong = adder.run()
var doubled: [Float] = [0, 0], two: Float = 2
vDSP_vsmul([1, 2], 1, &two, &doubled, 1, 2)
precondition(doubled == [2, 4] && mach_absolute_time() > 0)
precondition(CACurrentMediaTime() >= start)
Logger(subsystem: "add", category: "results").notice("compared \(length, privacy: .public) results")
let turn = simd_float2x2(SIMD2(0, 1), SIMD2(-1, 0))
print("wrong \(wrong), turned \(turn * SIMD2<Float>(3, 4)), arguments \(CommandLine.arguments.dropFirst())")
