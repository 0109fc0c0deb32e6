// The Bessel functions of the first and second kind, J and Y, and the modified ones of the second kind, K, of orders 0
// and 1. Coefficients: S. L. Moshier, "Methods and Programs for Mathematical Functions" (Cephes), 1989. For float32,
// those of Chebyshev series that are below its rounding error are omitted.

#ifndef ORCHARD_FORMULAS_BESSEL_KINDS_H
#define ORCHARD_FORMULAS_BESSEL_KINDS_H

namespace ORCHARD_FORMULAS {

// Σ c[k] T[k](x / 2) with the last coefficient halved, by Clenshaw's recurrence; the highest order comes first.
template <typename T> inline T clenshaw(T, T value, T, T last) { return T(0.5) * (value - last); }
template <typename T, typename... Rest> inline T clenshaw(T x, T value, T before, T, T next, Rest... rest) {
    return clenshaw(x, fused(x, value, next - before), value, before, rest...);
}
template <typename T, typename... Rest> inline T chebyshev(T x, T highest, Rest... rest) {
    return clenshaw(x, highest, T(0), T(0), rest...);
}

// The coefficients of an order: pp, pq, qp and qq of J and Y from 5 on, in (5/x)²; rp and rq of J up to 5 without its
// first two zeros, and yp and yq of Y up to 5 without the logarithm, in x²; `near` of K up to 2 without the logarithm,
// in x² - 2, and `far` of K from 2 on, in 8/x - 2.
template <int order> struct BesselSeries;

template <> struct BesselSeries<0> {
    template <typename T> static T pp(T x) {
        return polynomial(
            x, T(0.0007969367292973471), T(0.08283523921074408), T(1.239533716464143), T(5.447250030587687),
            T(8.74716500199817), T(5.303240382353949), T(1.0));
    }
    template <typename T> static T pq(T x) {
        return polynomial(
            x, T(0.0009244088105588637), T(0.08562884743544745), T(1.2535274390105895), T(5.470977403304171),
            T(8.761908832370695), T(5.306052882353947), T(1.0));
    }
    template <typename T> static T qp(T x) {
        return polynomial(
            x, T(-0.011366383889846916), T(-1.2825271867050931), T(-19.553954425773597), T(-93.20601521237683),
            T(-177.68116798048806), T(-147.07750515495118), T(-51.41053267665993), T(-6.050143506007285));
    }
    template <typename T> static T qq(T x) {
        return polynomial(
            x, T(1), T(64.3178256118178), T(856.4300259769806), T(3882.4018360540163), T(7240.467741956525),
            T(5930.727011873169), T(2062.0933166032783), T(242.0057402402914));
    }
    template <typename T> static T rp(T x) {
        return polynomial(
            x, T(-4794432209.782018), T(1956174919465.5657), T(-249248344360967.72), T(9708622510473064.0));
    }
    template <typename T> static T rq(T x) {
        return polynomial(
            x, T(1), T(499.563147152651), T(173785.4016763747), T(48440965.83399621), T(11185553704.535683),
            T(2112775201154.892), T(310518229857422.56), T(31812195594320496.0), T(1710862940810431500.0));
    }
    template <typename T> static T yp(T x) {
        return polynomial(
            x, T(15592.436785523574), T(-14663929.59039716), T(5435264770.518765), T(-982136065717.9115),
            T(87590639439536.7), T(-3466283033847297.0), T(44273326857256984.0), T(-18495080043698668.0));
    }
    template <typename T> static T yq(T x) {
        return polynomial(
            x, T(1), T(1041.2835366425984), T(626107.330137135), T(268919633.39381415), T(86400248710.3935),
            T(20297961275010.555), T(3171577528429750.5), T(250596256172653060.0));
    }
    template <typename T> static T near(T x) {
        if (sizeof(T) == sizeof(float)) {
            return chebyshev(
                x, T(2.5347910790261494e-7), T(0.00002286212103119452), T(0.001264615411446926), T(0.0359799365153615),
                T(0.3442898999246285), T(-0.5353273932339028));
        }
        return chebyshev(
            x, T(1.374465435613523e-16), T(4.25981614279661e-14), T(1.0349695257633842e-11), T(1.904516377220209e-9),
            T(2.5347910790261494e-7), T(0.00002286212103119452), T(0.001264615411446926), T(0.0359799365153615),
            T(0.3442898999246285), T(-0.5353273932339028));
    }
    template <typename T> static T far(T x) {
        if (sizeof(T) == sizeof(float)) {
            return chebyshev(
                x, T(-4.660489897687948e-8), T(2.766813639445015e-7), T(-0.0000018317555227191195),
                T(0.0000139498137188765), T(-0.00012849549581627802), T(0.0015698838857300533), T(-0.0314481013119645),
                T(2.4403030820659555));
        }
        return chebyshev(
            x, T(5.300433772686263e-18), T(-1.6475804301524212e-17), T(5.2103915050390274e-17),
            T(-1.678231096805412e-16), T(5.512055978524319e-16), T(-1.848593377343779e-15), T(6.3400764774050706e-15),
            T(-2.2275133269916698e-14), T(8.032890775363575e-14), T(-2.9800969231727303e-13), T(1.140340588208475e-12),
            T(-4.514597883373944e-12), T(1.8559491149547177e-11), T(-7.957489244477107e-11), T(3.577397281400301e-10),
            T(-1.69753450938906e-9), T(8.574034017414225e-9), T(-4.660489897687948e-8), T(2.766813639445015e-7),
            T(-0.0000018317555227191195), T(0.0000139498137188765), T(-0.00012849549581627802),
            T(0.0015698838857300533), T(-0.0314481013119645), T(2.4403030820659555));
    }
};
template <> struct BesselSeries<1> {
    template <typename T> static T pp(T x) {
        return polynomial(
            x, T(0.0007621256162081731), T(0.07313970569409176), T(1.1271960812968493), T(5.112079511468076),
            T(8.424045901417724), T(5.214515986823615), T(1.0));
    }
    template <typename T> static T pq(T x) {
        return polynomial(
            x, T(0.0005713231280725487), T(0.06884559087544954), T(1.105142326340617), T(5.073863861286015),
            T(8.399855543276042), T(5.209828486823619), T(1.0));
    }
    template <typename T> static T qp(T x) {
        return polynomial(
            x, T(0.05108625947501766), T(4.982138729512334), T(75.82382841325453), T(366.7796093601508),
            T(710.8563049989261), T(597.4896124006136), T(211.68875710057213), T(25.207020585802372));
    }
    template <typename T> static T qq(T x) {
        return polynomial(
            x, T(1), T(74.23732770356752), T(1056.4488603826283), T(4986.410583376536), T(9562.318924047562),
            T(7997.041604473507), T(2826.1927851763908), T(336.0936078106983));
    }
    template <typename T> static T rp(T x) {
        return polynomial(
            x, T(-899971225.7055594), T(452228297998.19403), T(-72749424522181.83), T(3682957328638529.0));
    }
    template <typename T> static T rq(T x) {
        return polynomial(
            x, T(1), T(620.8364781180543), T(256987.25675774884), T(83514679.14319493), T(22151159547.97925),
            T(4749141220799.914), T(784369607876235.9), T(89522233618462740.0), T(5322786203326801000.0));
    }
    template <typename T> static T yp(T x) {
        return polynomial(
            x, T(1263204747.9017804), T(-647355876379.1603), T(114509511541823.73), T(-8127702555013251.0),
            T(202439475713594900.0), T(-778877196265950100.0));
    }
    template <typename T> static T yq(T x) {
        return polynomial(
            x, T(1), T(594.3015923461282), T(235564.09294306856), T(73481194.44597217), T(18760131610.870617),
            T(3882312774962.3857), T(620557727146953.8), T(68714108735530050.0), T(3972706081165606400.0));
    }
    template <typename T> static T near(T x) {
        if (sizeof(T) == sizeof(float)) {
            return chebyshev(
                x, T(-2.213387630734726e-8), T(-0.0000024334061415659684), T(-0.0001730288957513052),
                T(-0.006975723859639864), T(-0.12261118082265715), T(-0.3531559607765449), T(1.5253002273389478));
        }
        return chebyshev(
            x, T(-7.023863479386288e-18), T(-2.427449850519366e-15), T(-6.666901694199329e-13),
            T(-1.4114883926335278e-10), T(-2.213387630734726e-8), T(-0.0000024334061415659684),
            T(-0.0001730288957513052), T(-0.006975723859639864), T(-0.12261118082265715), T(-0.3531559607765449),
            T(1.5253002273389478));
    }
    template <typename T> static T far(T x) {
        if (sizeof(T) == sizeof(float)) {
            return chebyshev(
                x, T(-1.0345762465678097e-8), T(5.7410841254500495e-8), T(-3.5019606030878126e-7),
                T(0.000002406484947837217), T(-0.00001936197974166083), T(0.00019521551847135162),
                T(-0.002857816859622779), T(0.10392373657681724), T(2.7206261904844427));
        }
        return chebyshev(
            x, T(-5.756744483665017e-18), T(1.7940508731475592e-17), T(-5.689462558442859e-17),
            T(1.838093544366639e-16), T(-6.057047248373319e-16), T(2.038703165624334e-15), T(-7.019837090418314e-15),
            T(2.4771544244813043e-14), T(-8.976705182324994e-14), T(3.3484196660784293e-13), T(-1.2891739609510289e-12),
            T(5.13963967348173e-12), T(-2.1299678384275683e-11), T(9.218315187605006e-11), T(-4.1903547593418965e-10),
            T(2.015049755197033e-9), T(-1.0345762465678097e-8), T(5.7410841254500495e-8), T(-3.5019606030878126e-7),
            T(0.000002406484947837217), T(-0.00001936197974166083), T(0.00019521551847135162), T(-0.002857816859622779),
            T(0.10392373657681724), T(2.7206261904844427));
    }
};

// J(x) for 0 ≤ x ≤ 5: the product with the squares of the first two zeros.
template <int order, typename T> inline T bessel_j_near(T x) {
    typedef BesselSeries<order> Series;
    const T first = order == 0 ? T(5.783185962946785) : T(14.681970642123893);
    const T second = order == 0 ? T(30.471262343662087) : T(49.2184563216946);
    T z = x * x;
    T value = (z - first) * (z - second) * (Series::rp(z) / Series::rq(z));
    return order == 0 ? value : value * x;
}

// √(2/πx)·(P cos θ - (5/x) Q sin θ), which is J(x) for x ≥ 5, or √(2/πx)·(P sin θ + (5/x) Q cos θ), which is Y(x). θ is
// x - π/4 for order 0 and x - 3π/4 for order 1. The difference would be rounded to multiples of 0.06 at x = 10⁶ in
// float32, so cos θ and sin θ are computed from cos x and sin x: for order 0, √2 cos θ = sin x + cos x and √2 sin θ =
// sin x - cos x; for order 1, √2 cos θ = sin x - cos x and √2 sin θ = -(sin x + cos x).
template <int order, bool is_first, typename T> inline T bessel_far_wave(T x) {
    typedef BesselSeries<order> Series;
    T ratio = T(5) / x;
    T z = ratio * ratio;
    T p = Series::pp(z) / Series::pq(z);
    T q = ratio * (Series::qp(z) / Series::qq(z));
    T sine = sin(x);
    T cosine = cos(x);
    T sum = sine + cosine;
    T difference = sine - cosine;
    T cos_angle = order == 0 ? sum : difference;
    T sin_angle = order == 0 ? difference : -sum;
    T wave = is_first ? p * cos_angle - q * sin_angle : p * sin_angle + q * cos_angle;
    return wave * T(0.564189583547756286948) * rsqrt(x);  // 1/√π
}

template <int order, typename T> inline T bessel_j(T x) {
    T a = fabs(x);
    T value = a > T(5) ? bessel_far_wave<order, true>(at_least(a, T(5))) : bessel_j_near<order>(at_most(a, T(5)));
    return order == 1 && x < T(0) ? -value : value;
}

// `value` for x > 0, `edge` at 0, NaN below.
template <typename T> inline T from_edge(T x, T value, T edge) {
    T above = x == T(0) ? edge : value;
    return x < T(0) ? T(NAN) : above;
}

template <int order, typename T> inline T bessel_y_near(T x) {
    typedef BesselSeries<order> Series;
    const T two_over_pi = T(0.636619772367581343076);
    T z = x * x;
    T rational = Series::yp(z) / Series::yq(z);
    T product = bessel_j_near<order>(x) * log(x);
    return order == 0 ? fused(product, two_over_pi, rational) : fused(rational, x, two_over_pi * (product - T(1) / x));
}

template <int order, typename T> inline T bessel_y(T x) {
    T value = x > T(5) ? bessel_far_wave<order, false>(at_least(x, T(5))) : bessel_y_near<order>(at_most(x, T(5)));
    return from_edge(x, value, T(-INFINITY));
}

// K(x) for 0 < x ≤ 2. The power series of I needs few terms there.
template <int order, typename T> inline T bessel_k_near(T x) {
    T half_x = x * T(0.5);
    T sum = BesselTerms<order, (sizeof(T) == sizeof(float) ? 8 : 13)>::near(half_x * half_x, T(1));
    T series = BesselSeries<order>::near(fused(x, x, T(-2)));
    T product = log(half_x) * sum;
    return order == 0 ? series - product : fused(product, half_x, series / x);
}

// K(x) for x ≥ 2, without the factor e^-x.
template <int order, typename T> inline T bessel_k_far(T x) {
    return BesselSeries<order>::far(T(8) / x - T(2)) * rsqrt(x);
}

template <int order, typename T> inline T bessel_k(T x) {
    T value = x > T(2) ? bessel_k_far<order>(at_least(x, T(2))) * exp(-x) : bessel_k_near<order>(at_most(x, T(2)));
    return from_edge(x, value, T(INFINITY));
}

// e^x·K(x), which does not underflow.
template <int order, typename T> inline T scaled_bessel_k(T x) {
    T small = at_most(x, T(2));
    T value = x > T(2) ? bessel_k_far<order>(at_least(x, T(2))) : bessel_k_near<order>(small) * exp(small);
    return from_edge(x, value, T(INFINITY));
}

}  // namespace ORCHARD_FORMULAS

#endif
