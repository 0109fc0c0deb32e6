// A wait on the host for a value that nobody signals ends, and one that is signaled is seen.
import Metal

let event = MTLCreateSystemDefaultDevice()!.makeSharedEvent()!
let early = event.wait(untilSignaledValue: 1, timeoutMS: 20)
event.signaledValue = 1
let late = event.wait(untilSignaledValue: 1, timeoutMS: 10_000)
print("a wait that timed out returned \(early), one for a signaled value \(late)")
exit(!early && late ? 0 : 1)
