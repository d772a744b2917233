/* How formulas are written. The numbers are stable. */
#ifndef ETCH_NOTATION_H
#define ETCH_NOTATION_H

/* Notations. Terms of higher total degree come first, then by order of declaration. What construction
 * rewrote into floor and max is recovered: `%`, ceil, min, abs, max over more than 0.
 *
 *   plain   2*B*S*H^2/tp + floor(a/8); operators + - * / // % ^, functions max min abs floor ceil, and
 *           sum(i, low, high, term); pow2(x) is 1 where x is a power of two, else 0
 *   LaTeX   for math mode: \frac{2\,B\,S\,H^{2}}{\mathrm{tp}} + \left\lfloor \frac{a}{8} \right\rfloor;
 *           brackets \left[a \ge 0\right] of Iverson where others write max(a + 1, 0) - max(a, 0)
 *   C       an expression of type double (C99, <math.h>) whose variables are of type double:
 *           2.0*B*S*H*H/tp + floor(a/8.0). A floor's argument is written over one denominator: its value is
 *           exact while numerator and denominator are integers below 2^53, and so is all of the value while
 *           every intermediate result is such an integer. For exact values of any size compile the
 *           expression. Where a sum did not close, the user provides SUM; with gcc and clang:
 *               #define SUM(i, low, high, term) __extension__({double s_ = 0; for (double i = (low); \
 *                                                   i <= (high); i++) s_ += (term); s_;})
 *           and where powers of two are asked for, a function:
 *               double pow2(double x) { int e; return x >= 1 && frexp(x, &e) == 0.5; }
 *   Python  2*B*S*H**2/tp + a//8: operators of Python, `//` for floors, functions max, min, abs,
 *           Rational(p, q), Sum(term, (i, low, high)). sympy.sympify reads it (give `locals` with the
 *           symbols: S, N, E, Q are names of SymPy's own). So does Python itself, exactly, where variables
 *           are fractions.Fraction and Rational is that class; it has no Sum, and no pow2, which SymPy takes
 *           for a function that it does not know.
 *   JSON    {"terms": [{"c": "24/11", "m": {"b": 1, "tp": -1}}]}: the canonical form. A term is the number
 *           "c" times variables to the powers in "m" times opaque factors
 *               "f": [{"op": "floor", "args": [..], "power": 1}]
 *           with expressions as arguments; "f" is left out where it is empty. op is floor, max, pow2, recip
 *           (1 over the argument), or sum: the arguments are n and a term, which is added for "#1" =
 *           0..n-1, where "#1" is among the variables of the term and 1 is the "level" of the sum, above
 *           those of sums in the term.
 *
 * In C and Python a name that is a keyword there, or has characters that identifiers may not have, is
 * written with _xHH (two hexadecimal digits) for such bytes: H' is H_x27. */
typedef enum etch_notation { ETCH_PLAIN, ETCH_LATEX, ETCH_C, ETCH_PYTHON, ETCH_JSON } etch_notation;

/* How sums are arranged. JSON has one form only.
 *   shortest  expanded or factored: whichever takes fewer names, numbers, operators and brackets; so are the
 *             sums in arguments of functions
 *   expanded  16*B*S^2*H + 6*B*S*H*V
 *   factored  2*B*S*H*(8*S + 3*V): common factors taken out, then the factor that saves the most, and so on
 *   relative  16*B*S^2*H*(1 + 3*V/(8*S)): everything measured by the first term, as far as that is never 0 */
typedef enum etch_form { ETCH_SHORTEST, ETCH_EXPANDED, ETCH_FACTORED, ETCH_RELATIVE } etch_form;

#endif
