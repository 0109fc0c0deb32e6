import Darwin
import Darwin.Mach
import Kernels
import Shared

// This module can import Darwin, since it does so outside of #if. Shared can't, since it does so inside of #if.
#if !canImport(Darwin)
#error("Darwin is missing")
#endif
#if os(Linux)
precondition(!asksDarwin)
#endif
precondition(mach_absolute_time() > 0 && Darwin.sqrt(4.0) == 2)

let values = try Saxpy()(factor: try Saxpy.factor())
print("last \(values[values.count - 1]), arguments \(CommandLine.arguments.dropFirst().joined(separator: " "))")
