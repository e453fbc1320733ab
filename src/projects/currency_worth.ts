/**
 * About how many of a currency are worth one dollar, in 2026. Decides which amounts are offered, so
 * it may be wrong by a factor of three. A currency that is not here is taken for a dollar.
 */
const perDollar: Readonly<Record<string, number>> = {
  ...{ aed: 3.7, afn: 70, all: 83, amd: 385, ang: 1.8, aoa: 915, ars: 1_400, aud: 1.5, awg: 1.8 },
  ...{ azn: 1.7, bam: 1.7, bbd: 2, bdt: 122, bgn: 1.7, bhd: 0.38, bif: 2_950, bmd: 1, bnd: 1.3 },
  ...{ bob: 6.9, brl: 5.5, bsd: 1, btn: 88, bwp: 13.5, byn: 3.2, bzd: 2, cad: 1.4, cdf: 2_500 },
  ...{ chf: 0.8, clp: 950, cny: 7.1, cop: 4_000, crc: 505, cup: 24, cve: 95, czk: 21, djf: 178 },
  ...{ dkk: 6.4, dop: 62, dzd: 130, egp: 48, ern: 15, etb: 145, eur: 0.86, fjd: 2.25, fkp: 0.75 },
  ...{ gbp: 0.75, gel: 2.7, ghs: 11, gip: 0.75, gmd: 72, gnf: 8_700, gtq: 7.7, gyd: 209, hkd: 7.8 },
  ...{ hnl: 26, hrk: 6.5, htg: 131, huf: 335, idr: 16_600, ils: 3.3, inr: 88, iqd: 1_310 },
  ...{ irr: 42_000, isk: 124, jmd: 160, jod: 0.71, jpy: 152, kes: 129, kgs: 87, khr: 4_000 },
  ...{ kmf: 425, kpw: 900, krw: 1_430, kwd: 0.31, kyd: 0.83, kzt: 530, lak: 21_700, lbp: 89_500 },
  ...{
    lkr: 304,
    lrd: 183,
    lsl: 17.3,
    lyd: 5.4,
    mad: 9.2,
    mdl: 17,
    mga: 4_450,
    mkd: 53,
    mmk: 2_100,
  },
  ...{ mnt: 3_580, mop: 8, mru: 40, mur: 45, mvr: 15.4, mwk: 1_735, mxn: 18.4, myr: 4.2, mzn: 64 },
  ...{
    nad: 17.3,
    ngn: 1_460,
    nio: 36.8,
    nok: 10,
    npr: 141,
    nzd: 1.75,
    omr: 0.38,
    pab: 1,
    pen: 3.4,
  },
  ...{ pgk: 4.2, php: 58, pkr: 281, pln: 3.65, pyg: 7_050, qar: 3.64, ron: 4.4, rsd: 101, rub: 81 },
  ...{ rwf: 1_450, sar: 3.75, sbd: 8.2, scr: 14, sdg: 600, sek: 9.4, sgd: 1.3, shp: 0.75, sle: 23 },
  ...{ sll: 23_000, sos: 571, srd: 38, ssp: 4_600, std: 21_000, stn: 21, svc: 8.75, syp: 11_000 },
  ...{ szl: 17.3, thb: 32.5, tjs: 9.3, tmt: 3.5, tnd: 2.9, top: 2.4, try: 42, ttd: 6.8, twd: 31 },
  ...{ tzs: 2_460, uah: 42, ugx: 3_480, uyu: 40, uzs: 12_000, ves: 220, vnd: 26_300, vuv: 121 },
  ...{
    wst: 2.75,
    xaf: 565,
    xcd: 2.7,
    xcg: 1.8,
    xof: 565,
    xpf: 103,
    yer: 239,
    zar: 17.3,
    zmw: 22.5,
  },
  zwl: 322,
  zwg: 26,
};

/** Stripe takes at most eight digits, two of them decimals: larger steps leave few amounts. */
const mostPerStep = 10_000;

/** Returns about what a dollar is in a currency, in round numbers. */
export function dollarIn(currency: string): {
  /** A power of ten, at most about three dollars, of which amounts are multiples. */
  step: bigint;
  /** At least half a dollar. */
  least: bigint;
  /** Some hundred dollars, or a few thousand. */
  most: bigint;
} {
  const worth = Math.max(1, perDollar[currency] ?? 1);
  const power = 10 ** Math.round(Math.log10(worth));
  const step = Math.min(power, mostPerStep);
  const least = [1, 2, 5].find((times) => times * step >= worth / 2) ?? 10;
  return { step: BigInt(step), least: BigInt(least * step), most: BigInt(power * 1_000) };
}
