/** Tests what the compiler accepts and rejects. */
import {
  compute,
  expectCompiles,
  expectNumbers,
  expectRefused,
  knowsVersion,
  NotChecked,
  type Probe,
  Refuted,
  versions,
} from "../probe.ts";

const both = (accepted: string, refused: string): string => `${accepted}; ${refused}`;

/** Returns a kernel with these statements; `x` and `y` are buffers of float, `c` is in `constant`. */
const kernel = (body: string, declarations = ""): string => `${declarations}
kernel void k(device float *x [[buffer(0)]], device float *y [[buffer(1)]], constant float &c [[buffer(2)]],
              uint i [[thread_position_in_grid]]) { ${body} }`;

const asType: Probe = () =>
  both(
    expectCompiles({ as_type: kernel("y[i] = as_type<float>(as_type<uint>(x[i]));") }),
    expectRefused({ "metal::as_type": kernel("y[i] = metal::as_type<float>(metal::as_type<uint>(x[i]));") }),
  );

const positions: Probe = () => {
  const one = (type: string, index = "at") =>
    `kernel void k(device float *y [[buffer(0)]], ${type} at [[thread_position_in_grid]]) { y[${index}] = 1; }`;
  const two = (type: string) =>
    `kernel void k(device float *y [[buffer(0)]], uint2 at [[thread_position_in_grid]],
       ${type} group [[threadgroup_position_in_grid]]) { y[at.x] = 1; }`;
  return both(
    expectCompiles({
      uint: one("uint"),
      ushort: one("ushort"),
      uint2: one("uint2", "at.x"),
      ushort3: one("ushort3", "at.x"),
      "uint2 beside ushort2": two("ushort2"),
    }),
    expectRefused({
      int: one("int"),
      ulong: one("ulong"),
      uint4: one("uint4", "at.x"),
      float: one("float", "0"),
      "uint2 beside uint3": two("uint3"),
    }),
  );
};

const refusals: Probe = () => {
  const depth = `template <int N> float f(float x) { return f<N - 1>(x) + 1; }
    template <> float f<0>(float x) { return x; }`;
  const accepted = expectCompiles({
    "a template that calls another instance": kernel("y[i] = f<3>(x[i]);", depth),
    "an element as a value": kernel("float4 v = x[i]; float e = v.y; v[0] = e; y[i] = v.x;"),
  });
  const refused = expectRefused({
    recursion: kernel("y[i] = f(x[i]);", "float f(float x) { return x > 0 ? f(x - 1) : x; }"),
    "recursion of a template": kernel(
      "y[i] = f(x[i]);",
      "template <typename T> T f(T x) { return x > 0 ? f(T(x - 1)) : x; }",
    ),
    "recursion through overloads": kernel(
      "y[i] = f(x[i]);",
      "float f(float x); int f(int x) { return f(float(x)); } float f(float x) { return x > 0 ? f(int(x)) : x; }",
    ),
    "a reference to an element of a vector": kernel("float4 v = x[i]; thread float &r = v.x; r = 2; y[i] = v.x;"),
    "the address of an indexed element": kernel("float4 v = x[i]; thread float *p = &v[0]; *p = 2; y[i] = v.x;"),
    "the call of a kernel": `kernel void a(device float *x [[buffer(0)]]) { x[0] = 1; }
      kernel void b(device float *x [[buffer(0)]]) { a(x); }`,
    "the address of an element of a vector": kernel("float4 v = x[i]; thread float *p = &v.y; *p = 2; y[i] = v.y;"),
    "a function constant that is a struct": `struct S { int a; }; constant S s [[function_constant(0)]];
      ${kernel("y[i] = s.a;")}`,
  });
  const references = expectCompiles({
    "references to pointers": kernel(
      "device const float *p = x; f(p); g(p); y[i] = *p;",
      "void f(device const float *thread &p) { p += 1; } void g(const device float *&p) { p -= 1; }",
    ),
  });
  return both(both(accepted, references), both(refused, strictReadings()));
};

/** Forms that the specification excludes, but of which no run of Apple's compiler is known. */
const strictReadings: Probe = () => {
  const usual = kernel("y[i] = x[i];");
  return expectRefused({
    "an argument that points to the thread's pointers": "kernel void a(device float **x [[buffer(0)]]) {}",
    "a pointer in the program's scope": `constant float c = 1; constant float *p = &c; ${usual}`,
    "a constant that calls a function at run time": `float f() { return 1; } constant float c = f(); ${usual}`,
    "a constexpr constant that depends on a function constant": `constant int n [[function_constant(0)]];
      constexpr constant int m = n + 1; ${usual}`,
    "too many elements in braces": `constant float2 c = {1, 2, 3}; ${usual}`,
    "a sampler as a texture": "kernel void a(sampler s [[texture(0)]]) {}",
    "a constant in threadgroup memory": "kernel void a(constant float &x [[threadgroup(0)]]) {}",
    "an index with a fraction": "kernel void a(device float *x [[buffer(1.5)]]) {}",
    "textures that overlap":
      "kernel void a(array<texture2d<half>, 4> t [[texture(0)]], texture2d<half> s [[texture(3)]]) {}",
    "textures beyond the last index": "kernel void a(array<texture2d<float>, 4> t [[texture(126)]]) {}",
    "a variable of a lambda in threadgroup memory": kernel(
      "auto f = [](float a) { threadgroup float t; return a; }; y[i] = f(x[i]);",
    ),
    "an external variable in a function": kernel("extern float e; y[i] = x[i];"),
    "a keyword as a name": kernel("float vertex = x[i]; y[i] = vertex;"),
    "a labeled statement": kernel("end: y[i] = x[i];"),
    "a function named main": `float main() { return 1; } ${usual}`,
    "an array without elements": kernel("float e[0]; y[i] = x[i];"),
    "a long double": kernel("y[i] = 1.0L;"),
    "a type of 128 bits": kernel("__int128 n = i; y[i] = n;"),
    "the fence of a texture that is only read": "kernel void a(texture2d<float, access::read> t) { t.fence(); }",
  });
};

const threadgroupInitializer: Probe = () =>
  expectCompiles({
    "an initializer of a threadgroup variable": kernel(
      "threadgroup float t[4] = {0}; t[i % 4] = x[i]; y[i] = t[i % 4];",
    ),
  });

const matrixOfBool: Probe = () => {
  const named = "template <typename T> struct Fragment { typedef simdgroup_matrix<T, 8, 8> matrix_type; T own[2]; };";
  return both(
    expectCompiles({ "its name": kernel("Fragment<bool> f = {{true, false}}; y[i] = f.own[0];", named) }),
    expectRefused({ "one that is made": kernel("simdgroup_matrix<bool, 8, 8> m; (void)m; y[i] = 1;") }),
  );
};

const narrowConversions: Probe = () => {
  const types = ["half", "bfloat"];
  const sources = ["bool", "int", "long", "ulong"];
  const body = types.flatMap((to) => sources.map((from) => `y[i] += float(${to}(${from}(x[i])));`)).join(" ");
  return expectCompiles({ [`${sources.join(", ")} to half and bfloat`]: kernel(body) });
};

/** Temporaries, and objects of other address spaces, bound to `const thread T &`. */
const temporaries: Probe = () => {
  const plain = "float f(const thread float &a, const thread float &b) { return a * 10 + b; }";
  const deduced = "template <typename T> T f(const thread T &a, const thread T &b) { return a + b; }";
  const forwarded = "template <typename A> float f(thread A &&a) { return float(a); }";
  return both(
    expectCompiles({
      temporaries: kernel("float v = x[i]; y[i] = f(x[i] + 1, 3.0f) + f(float(x[i]), v);", plain),
      "temporaries of a deduced type": kernel("y[i] = f(x[i] + 1, 3.0f);", deduced),
      "thread T && of device and constant": kernel("y[i] = f(x[i]) + f(c) + f(i) + f(1.0f);", forwarded),
    }),
    expectRefused({
      "an element of a buffer": kernel("y[i] = f(float(2), x[i]);", plain),
      "a constant": kernel("y[i] = f(c, 2.0f);", deduced),
    }),
  );
};

/** Forms of other projects' programs that the specification does not name. */
const unnamedForms: Probe = () => {
  const members = "struct A { thread float s; thread float f() { return s; } }; thread float g(float v) { return v; }";
  return expectCompiles({
    "a matrix divided by a number": kernel("float2x2 m = float2x2(x[i]) / 2.0f; m /= c; y[i] = m[1][1];"),
    "float4(float2, float)": kernel("float4 v = float4(float2(x[i]), 3.0f); y[i] = v.w;"),
    "thread before the type of a value": kernel("A a; a.s = x[i]; y[i] = a.f() + g(x[i]);", members),
  });
};

const programInputs: Probe = () => {
  const declarations = `uint position [[thread_position_in_grid]];
    uint hidden(uint position) { return position + 1; }
    uint seen() { return position * 100; }`;
  const body = "y[i] = position + seen() + 10000 * hidden(7);";
  const got = compute({ declarations, body, result: new Uint32Array(64), threads: 64 });
  expectNumbers(
    got,
    Array.from({ length: 64 }, (_, at) => at * 101 + 80_000),
    (at) => `thread ${at}`,
  );
  return "an input of the program is seen by functions, and hidden by a parameter";
};

const lambdas: Probe = () => {
  const lambda = kernel("auto square = [](float v) { return v * v; }; y[i] = square(x[i]);");
  const constexpr = kernel("if constexpr (sizeof(half) == 2) { y[i] = 1; }");
  const seen = [
    expectCompiles({ "if constexpr in 3.1": constexpr }, "3.1"),
    expectRefused({ "a lambda in 3.1": lambda }, "3.1"),
  ];
  if (knowsVersion("3.2")) seen.push(expectCompiles({ "a lambda in 3.2": lambda }, "3.2"));
  const auto = kernel("y[i] = value<3>();", "template <auto n> float value() { return n; }");
  seen.push(expectRefused({ "template <auto> in 3.1": auto }, "3.1"));
  if (knowsVersion("4.0")) seen.push(expectCompiles({ "template <auto> in 4.0": auto }, "4.0"));
  return seen.join("; ");
};

const enumeratorTemplates: Probe = () =>
  expectCompiles({
    "a struct for each enumerator": kernel(
      "y[i] = Formula<Two>::apply(x[i]); CALL(y[i] += , x[i], 1)",
      `enum Name { One, Two };
       template <Name name> struct Formula;
       template <> struct Formula<One> { static float apply(float v) { return v; } };
       template <> struct Formula<Two> { static float apply(float v) { return 2 * v; } };
       #define CALL(start, ...) start fmax(__VA_ARGS__);`,
    ),
  });

const functionPointers: Probe = () => {
  const declarations = `typedef float (*Unary)(float);
    static float negate(float v) { return -v; }
    static float twice(float v) { return 2 * v; }
    template <float (*f)(float)> float of(float v) { return f(v); }
    template <typename F> float call(F f, float v) { return f(v); }`;
  const body = `Unary pick = negate; y[0] = pick(x[0]); y[1] = of<twice>(x[0]); y[2] = call(twice, x[0]);
    pick = twice; y[3] = pick(x[0]);`;
  const inputs = { x: new Float32Array([5]) };
  const got = compute({ declarations, body, inputs, result: new Float32Array(4), threads: 1 });
  expectNumbers(got, [-5, 10, 10, 10]);
  return "as template arguments, parameters and variables";
};

const derivedClasses: Probe = () =>
  expectCompiles({
    "a derived class with members": kernel(
      "B b; b.a = x[i]; b.b = 2; y[i] = b.a * b.b;",
      "struct A { float a; }; struct B : A { float b; };",
    ),
  });

const methodObject: Probe = () => {
  const declarations = "struct Box { float v; float get() const { return v; } };";
  const inDevice = kernel("y[i] = ((device Box *)x)[i].get();", declarations);
  const inThread = kernel("Box b = {x[i]}; y[i] = b.get();", declarations);
  const before = (["3.1", "3.2", "4.0"] as const).filter(knowsVersion);
  const seen = before.flatMap((version) => [
    expectCompiles({ [`an object in thread in ${version}`]: inThread }, version),
    expectRefused({ [`one in device in ${version}`]: inDevice }, version),
  ]);
  if (!knowsVersion("4.1")) throw new NotChecked(`${seen.join("; ")}; this system's compiler does not know Metal 4.1`);
  seen.push(expectCompiles({ "an object in device in 4.1": inDevice }, "4.1"));
  return seen.join("; ");
};

/** If two methods differ in the object's address space, a constant expression calls the one for `thread`. */
const constantObject: Probe = () => {
  const declarations = `struct Box { int v;
      constexpr int get() const thread { return v; }
      constexpr int get() const device { return v + 10; } };
    constexpr int seen() { Box b{3}; return b.get(); }`;
  const got = compute({ declarations, body: "y[0] = seen();", result: new Int32Array(1), threads: 1 });
  expectNumbers(got, [3]);
  return "a constant expression calls the method of thread";
};

/** The enumeration accepts any number, so an unknown version must be rejected before Metal sees it. */
const languageVersion: Probe = () => {
  if (knowsVersion("9.9")) throw new Refuted("Metal 9.9 compiles");
  return `Metal 9.9 is refused; known are ${versions.filter(knowsVersion).join(", ")}`;
};

export const languageProbes = {
  "as-type": asType,
  positions,
  "language-refusals": refusals,
  "threadgroup-initializer": threadgroupInitializer,
  "matrix-of-bool": matrixOfBool,
  "narrow-conversions": narrowConversions,
  temporaries,
  "unnamed-forms": unnamedForms,
  "program-inputs": programInputs,
  "lambdas-by-version": lambdas,
  "enumerator-templates": enumeratorTemplates,
  "function-pointers": functionPointers,
  "derived-classes": derivedClasses,
  "method-object": methodObject,
  "constant-object": constantObject,
  "language-version": languageVersion,
} satisfies Readonly<Record<string, Probe>>;
