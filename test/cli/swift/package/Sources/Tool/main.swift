import Darwin
import Darwin.Mach
import Kernels
import Shared

// Darwin is here, since this module imports it outside of #if. In Shared, which imports it inside, it is not.
#if !canImport(Darwin)
#error("Darwin is missing")
#endif
#if os(Linux)
precondition(!asksDarwin)
#endif
precondition(mach_absolute_time() > 0 && Darwin.sqrt(4.0) == 2)

let values = try Saxpy()(factor: try Saxpy.factor())
print("last \(values[values.count - 1]), arguments \(CommandLine.arguments.dropFirst().joined(separator: " "))")
