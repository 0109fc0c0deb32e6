/** Constructs of kernels in other projects besides arithmetic: structures, templates of them, matrices, lambdas. */
import { type Declare, scopeOf, value } from "./declarations.ts";
import { nameOf, pick, scalar, type Type } from "./types.ts";

const numbers = ["float", "int", "uint", "half"];

/** Operators, conversions and constructors, as for complex numbers. */
const operators: Declare = (declared, index, random) => {
  const type = pick(random, ["float", "half", "int"]);
  const name = `C${index}`;
  const joined = pick(random, ["+", "-", "*"]);
  declared.text.push(`struct ${name} {
  ${type} re, im;
  ${name}() = default;
  constexpr ${name}(${type} a, ${type} b = 0) : re(a), im(b) {}
  operator ${type}() const { return re; }
  ${name} operator${joined}(${name} other) const {
    return ${name}(${type}(re ${joined} other.re), ${type}(im ${joined} other.im)); }
  thread ${name} &operator+=(${name} other) { re += other.re; im += other.im; return *this; }
  bool operator<(${name} other) const { return re < other.re; }
};
${type} c_of${index}(${type} x) { ${name} a(x, 1), b = ${name}(2); a += b; ${name} c = a ${joined} b;
    return ${type}(c.re + (c < a ? c.im : b.im)); }`);
  declared.functions.push({ name: `c_of${index}`, result: scalar(type), parameters: [scalar(type)] });
};

/** A class template, specialized, with a static member and a member type. */
const traits: Declare = (declared, index, random) => {
  const type = pick(random, numbers);
  const other = pick(
    random,
    numbers.filter((own) => own !== type),
  );
  declared.text.push(`template <typename T> struct T${index} { static constexpr constant uint width = 4;
    typedef T part; };
template <> struct T${index}<${type}> { static constexpr constant uint width = ${random.integer(1, 9)};
    typedef ${other} part; };
template <typename T, typename = enable_if_t<is_integral<T>::value>> T only${index}(T x) { return T(x + T(1)); }
${other} wide${index}(${type} x) { typename T${index}<${type}>::part p = typename T${index}<${type}>::part(x);
  if (is_same<${type}, ${type}>::value && T${index}<${other}>::width > 2)
    p = p + T${index}<${type}>::part(only${index}(3));
  return ${other}(p * ${other}(T${index}<${type}>::width)); }`);
  declared.functions.push({ name: `wide${index}`, result: scalar(other), parameters: [scalar(type)] });
};

/** Numbers as template arguments, a member template, and arrays whose lengths are such numbers. */
const sized: Declare = (declared, index, random) => {
  const type = pick(random, numbers);
  const count = random.integer(2, 5);
  declared.text.push(`template <typename T, int N, bool B = true> struct L${index} {
  T own[N]; array<T, N> more;
  template <typename U> void fill(U x) { for (int k = 0; k < N; k++) { own[k] = T(x); more[k] = T(k); } }
  T sum() const thread { T s = T(0); for (int k = 0; k < N; ++k) s = T(s + own[k] * (B ? more[k] : T(1)));
    return s; }
};
template <int N> ${type} l${index}(${type} x) { L${index}<${type}, N> l; l.fill(x);
    L${index}<${type}, N + 1, false> m; m.fill(2); return ${type}(l.sum() + m.sum()); }`);
  declared.functions.push({ name: `l${index}<${count}>`, result: scalar(type), parameters: [scalar(type)] });
};

/** A structure in each address space: copied whole, by its members, by reference and by pointer. */
const copies: Declare = (declared, index, random) => {
  const type = pick(random, ["float", "half", "uint"]);
  const name = `P${index}`;
  const alignment = pick(random, ["", "alignas(16) "]);
  declared.text.push(`struct ${alignment}${name} { ${type} a; packed_float3 p; ${type}2 v; struct {
    uchar b[4]; } inner; };
constant ${name} fixed${index} = {1, packed_float3(1, 2, 3), ${type}2(4), {{1, 2, 3, 4}}};
float of${index}(thread const ${name} &s) {
    return float(s.a) + s.p[1] + float3(s.p).z + float(s.v.y) + float(s.inner.b[2]); }
float of${index}(device const ${name} *s) { return float(s->a) + s->p.x; }
float of${index}(threadgroup ${name} &s) { s.inner.b[0] += 1; return float(s.v.x); }
float with${index}(float x) { ${name} s = fixed${index}; s.a = ${type}(x); s.p = float3(x);
    thread ${name} *q = &s; q->v.y = ${type}(2);
  ${name} t = *q; return of${index}(t) + of${index}(s); }`);
  declared.functions.push({ name: `with${index}`, result: scalar("float"), parameters: [scalar("float")] });
  declared.inKernels.push({
    text: `of${index}((device const ${name} *)x)`,
    type: scalar("float"),
    isConst: true,
  });
};

const matrices: Declare = (declared, index, random) => {
  const type = pick(random, ["float", "half"]);
  const [columns, rows] = [random.integer(2, 4), random.integer(2, 4)];
  const matrix = `${type}${columns}x${rows}`;
  const vector: Type = { scalar: type, length: columns };
  const result: Type = { scalar: type, length: rows };
  declared.text.push(`${nameOf(result)} x${index}(${nameOf(vector)} v) { ${matrix} m = ${matrix}(${type}(2));
    m[0] = ${nameOf(result)}(${type}(3)); m[1][1] += ${type}(1);
  ${type}${rows}x${columns} t = transpose(m); ${nameOf(result)} r = m * v + v * t;
    return (m * ${type}(2)) * v + r; }
${type} d${index}(${type} x) { ${type}3x3 m(x); m[2].xy = ${type}2(x); return determinant(m * m); }`);
  declared.functions.push({ name: `x${index}`, result, parameters: [vector] });
  declared.functions.push({ name: `d${index}`, result: scalar(type), parameters: [scalar(type)] });
};

/** Unions, bit-fields, casts of pointers and the like. */
const bits: Declare = (declared, index, random) => {
  const scope = scopeOf(declared, [{ text: "x", type: scalar("uint") }], random);
  declared.text.push(`union U${index} { uint word; uchar bytes[4]; half2 halves; };
struct F${index} { uint low : 5; uint high : 27; };
uint b${index}(uint x) { const uint i = 3; U${index} u; u.word = ${value(scalar("uint"), scope, 1)};
    F${index} f; f.low = x; f.high = u.bytes[1];
  u.bytes[2] ^= uchar(f.low); thread uchar *p = (thread uchar *)&u; p[0] = 1;
    thread const ushort2 &h = *reinterpret_cast<thread const ushort2 *>(&u.word);
  return u.word + h.y + f.high + sizeof(U${index}) + (i, x); }`);
  declared.functions.push({ name: `b${index}`, result: scalar("uint"), parameters: [scalar("uint")] });
};

/** Deduced types, and references and pointers with an explicit address space. */
const deduced: Declare = (declared, index, random) => {
  const type = pick(random, numbers);
  declared.text.push(`constexpr constant ${type} list${index}[3] = {1, 2, 3};
#define STEP${index}(a, b) a = ${type}(a + (b)); \\
  a = ${type}(a * ${type}(2))
auto u${index}(${type} x) -> ${type} { auto y = x; thread auto &r = y; r += x; decltype(y) z = ${type}(r);
    const constant auto &c = list${index}[1];
  constexpr int n = sizeof(list${index}) / sizeof(${type}); ${type} own[n] = {};
    for (auto each : list${index}) z += each;
  STEP${index}(z, c); thread ${type} *p = z > c ? &own[0] : own + n - 1; *p = z;
    return ${type}(*p + ${type}(n)); }`);
  declared.functions.push({ name: `u${index}`, result: scalar(type), parameters: [scalar(type)] });
};

/** Functors as template arguments, as in reductions. */
const functors: Declare = (declared, index, random) => {
  const type = pick(random, numbers);
  const joined = pick(random, ["a + b", "max(a, b)", "a < b ? a : b"]);
  declared.text.push(`struct Op${index} { static constexpr constant int init = 0;
    template <typename T> T operator()(T a, T b) const { return T(${joined}); } };
template <typename T, typename Op> struct R${index} { Op op; T run(T x) { T s = T(Op::init); for (int k = 0;
    k < 3; k++) s = op(s, T(x + T(k))); return s; } };
template <typename T, template <typename> class> struct Unused${index} {};
${type} r${index}(${type} x) { R${index}<${type}, Op${index}> r; return Op${index}()(r.run(x), x); }`);
  declared.functions.push({ name: `r${index}`, result: scalar(type), parameters: [scalar(type)] });
};

/** A tile of threadgroup memory and matrices of a SIMD-group, through a structure that holds pointers. */
const blocks: Declare = (declared, index, random) => {
  const type = pick(random, ["float", "half", "bfloat"]);
  declared.text.push(`template <typename T> struct Block${index} {
  const device T *from; threadgroup T *to; ushort lane; thread const uint &count;
  Block${index}(const device T *f, threadgroup T *t, ushort l, thread const uint &n)
    : from(f), to(t), lane(l), count(n) {}
  void load() const { for (uint k = lane; k < count; k += 32) to[k] = from[k & 7]; }
};
float block${index}(const device ${type} *from, threadgroup ${type} *to, ushort lane) {
  const uint count = 64; Block${index}<${type}> b(from, to, lane, count); b.load();
    threadgroup_barrier(mem_flags::mem_threadgroup);
  simdgroup_matrix<${type}, 8, 8> m; simdgroup_load(m, to, 8);
    simdgroup_float8x8 sum = make_filled_simdgroup_matrix<float, 8, 8>(0.0f);
  simdgroup_multiply_accumulate(sum, m, m, sum); return float(to[lane]) + sum.thread_elements()[0]; }`);
  const text = `block${index}((const device ${type} *)x, (threadgroup ${type} *)tile, lane)`;
  declared.inKernels.push({ text, type: scalar("float"), isConst: true });
};

export const structures = {
  operators,
  traits,
  sized,
  copies,
  matrices,
  bits,
  deduced,
  functors,
  blocks,
} satisfies Readonly<Record<string, Declare>>;
