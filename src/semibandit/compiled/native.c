/* The one way from Python into kernels compiled ahead of time (see ahead.py).
 *
 * A kernel compiled ahead takes 64-bit slots, and signatures are strings: slots.py tells both. bind(name, fingerprint,
 * otherwise) gives a function that fills slots and calls; arguments that fit no signature compiled ahead go to
 * `otherwise`, which compiles for them. Limited API: one file serves every Python from 3.11 on. dtype: d q i B ? Q as
 * in the struct module.
 */
#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x030b0000
#include <Python.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* As numba calls: where to leave a value (never used), where to leave what was raised, the address of the slots. */
typedef int32_t (*kernel)(void **, void **, int64_t);
typedef struct { const char *name, *fingerprint, *spec; kernel level[2]; } entry;
extern const entry semibandit_entries[]; /* written by ahead.py, sorted by name; ends with a NULL name */
extern const char *const semibandit_levels[2];
extern const char semibandit_sources[];

/* What numba's code calls of numba's own library. No kernel here owns memory, so there is nothing to count. */
double numba_nextafter(double from, double to) { return nextafter(from, to); }
void NRT_incref(void *memory) { (void)memory; }
void NRT_decref(void *memory) { (void)memory; }

#define MOST_SLOTS 256
#define MOST_ARRAYS 96

/* What a bound function needs; made once a kernel and kept as long as the process. */
typedef struct { PyMethodDef method; const entry *first; int n; PyObject *otherwise; } binding;

/* The beginning of numpy's array object, the same in every version; checked when the module is imported. */
typedef struct {
  PyObject_HEAD
  char *data;
  int nd;
  Py_ssize_t *dimensions, *strides;
  PyObject *base, *descr;
  int flags;
} array;
enum { C_CONTIGUOUS = 0x1, ALIGNED = 0x100, WRITEABLE = 0x400 };

static PyObject *ndarray, *uint64_type, *bool_type;
static const char codes[] = "dqiB?Q";
static PyObject *descrs[6];
static int fast_arrays, level;

typedef struct { int64_t slots[MOST_SLOTS]; Py_buffer views[MOST_ARRAYS]; int n_slots, n_views; } call;

static void release(call *c) {
  while (c->n_views > 0) PyBuffer_Release(&c->views[--c->n_views]);
}

/* The readers return 1 if the argument fits, else 0, without an error set. */

static int read_buffer(const char *p, PyObject *arg, call *c) {
  if (c->n_views == MOST_ARRAYS) return 0;
  Py_buffer *v = &c->views[c->n_views];
  if (PyObject_GetBuffer(arg, v, PyBUF_C_CONTIGUOUS | PyBUF_FORMAT | (*p == 'a' ? PyBUF_WRITABLE : 0))) {
    PyErr_Clear();
    return 0;
  }
  c->n_views++;
  const char *format = v->format ? v->format : "B";
  if (*format == '@' || *format == '=') format++;
  char code = *format;
  if (format[0] && format[1]) return 0;
  if ((code == 'l' || code == 'q') && v->itemsize == 8) code = 'q';
  if ((code == 'L' || code == 'Q') && v->itemsize == 8) code = 'Q';
  if (code != p[1] || v->ndim != p[2] - '0' || c->n_slots + 1 + v->ndim > MOST_SLOTS) return 0;
  c->slots[c->n_slots++] = (int64_t)(intptr_t)v->buf;
  for (int d = 0; d < v->ndim; d++) c->slots[c->n_slots++] = v->shape[d];
  return 1;
}

static int read_array(const char *p, PyObject *arg, call *c) {
  if (!fast_arrays || (PyObject *)Py_TYPE(arg) != ndarray) return read_buffer(p, arg, c);
  const array *a = (const array *)arg;
  int need = C_CONTIGUOUS | ALIGNED | (*p == 'a' ? WRITEABLE : 0);
  if (a->nd != p[2] - '0' || (a->flags & need) != need) return 0;
  const char *code = strchr(codes, p[1]);
  if (!code || a->descr != descrs[code - codes]) return read_buffer(p, arg, c);
  if (c->n_slots + 1 + a->nd > MOST_SLOTS) return 0;
  c->slots[c->n_slots++] = (int64_t)(intptr_t)a->data;
  for (int d = 0; d < a->nd; d++) c->slots[c->n_slots++] = a->dimensions[d];
  return 1;
}

/* strict: an integer is no float, and only numpy's uint64 is one. */
static int read_number(char code, PyObject *arg, call *c, int strict) {
  if (c->n_slots == MOST_SLOTS) return 0;
  int64_t *slot = &c->slots[c->n_slots];
  if (code == 'd') {
    if (!PyFloat_Check(arg) && (strict || !PyLong_Check(arg))) return 0;
    double x = PyFloat_AsDouble(arg);
    memcpy(slot, &x, 8);
  } else if (code == '?') {
    if (!PyBool_Check(arg) && (PyObject *)Py_TYPE(arg) != bool_type) return 0;
    *slot = PyObject_IsTrue(arg);
  } else if (code == 'Q') {
    if ((PyObject *)Py_TYPE(arg) != uint64_type && (strict || !PyLong_Check(arg))) return 0;
    *slot = (int64_t)PyLong_AsUnsignedLongLongMask(arg);
  } else if (code == 'q') {
    if (PyBool_Check(arg) || PyFloat_Check(arg)) return 0;
    if (!PyLong_Check(arg) && (strict && (PyObject *)Py_TYPE(arg) == uint64_type)) return 0;
    if (!PyLong_Check(arg) && !PyIndex_Check(arg)) return 0;
    *slot = PyLong_AsLongLong(arg);
  } else
    return 0;
  if (PyErr_Occurred()) {
    PyErr_Clear();
    return 0;
  }
  c->n_slots++;
  return 1;
}

static int read_one(const char **at, PyObject *arg, call *c, int strict) {
  const char *p = *at;
  if (*p == '(') {
    if (!PyTuple_Check(arg)) return 0;
    Py_ssize_t n = PyTuple_Size(arg), i = 0;
    for (p++; *p != ')'; i++)
      if (i >= n || !read_one(&p, PyTuple_GetItem(arg, i), c, strict)) return 0;
    *at = p + 1;
    return i == n;
  }
  if (*p == 's') {
    *at = p + 2;
    return read_number(p[1], arg, c, strict);
  }
  *at = p + 3;
  return read_array(p, arg, c);
}

static PyObject *write_one(const char **at, const int64_t *slots, int *s) {
  const char *p = *at;
  if (*p == 'n') {
    *at = p + 1;
    Py_INCREF(Py_None);
    return Py_None;
  }
  if (*p == 's') {
    *at = p + 2;
    int64_t raw = slots[(*s)++];
    double x;
    switch (p[1]) {
    case 'd': memcpy(&x, &raw, 8); return PyFloat_FromDouble(x);
    case '?': return PyBool_FromLong(raw & 1);
    case 'Q': return PyLong_FromUnsignedLongLong((uint64_t)raw);
    default: return PyLong_FromLongLong(raw);
    }
  }
  PyObject *list = PyList_New(0), *tuple;
  if (!list) return NULL;
  for (p++; *p != ')';) {
    PyObject *item = write_one(&p, slots, s);
    if (!item || PyList_Append(list, item)) {
      Py_XDECREF(item);
      Py_DECREF(list);
      return NULL;
    }
    Py_DECREF(item);
  }
  *at = p + 1;
  tuple = PyList_AsTuple(list);
  Py_DECREF(list);
  return tuple;
}

static PyObject *run(PyObject *self, PyObject *const *args, Py_ssize_t n) {
  const binding *b = PyCapsule_GetPointer(self, "semibandit");
  if (!b) return NULL;
  call c;
  c.n_views = 0;
  for (int strict = 1; strict >= 0; strict--)
    for (const entry *e = b->first; e < b->first + b->n; e++) {
      const char *p = e->spec;
      Py_ssize_t i = 0;
      for (c.n_slots = 0; i < n && *p != ':' && read_one(&p, args[i], &c, strict); i++);
      if (i < n || *p != ':') {
        release(&c);
        continue;
      }
      int32_t status;
      void *value = NULL, *raised = NULL;
      Py_BEGIN_ALLOW_THREADS
      status = e->level[level](&value, &raised, (int64_t)(intptr_t)c.slots);
      Py_END_ALLOW_THREADS
      release(&c);
      if (status != 0 && status != -2) /* 0: fine; -2: None */
        return PyErr_Format(PyExc_RuntimeError, "the kernel %s failed with status %d", e->name, (int)status);
      int s = 0;
      p++;
      return write_one(&p, c.slots, &s);
    }
  PyObject *tuple = PyTuple_New(n), *answer;
  if (!tuple) return NULL;
  for (Py_ssize_t i = 0; i < n; i++) {
    Py_INCREF(args[i]);
    PyTuple_SetItem(tuple, i, args[i]);
  }
  answer = PyObject_CallObject(b->otherwise, tuple);
  Py_DECREF(tuple);
  return answer;
}

static PyObject *bind(PyObject *self, PyObject *args) {
  const char *name, *fingerprint;
  PyObject *otherwise;
  if (!PyArg_ParseTuple(args, "ssO", &name, &fingerprint, &otherwise)) return NULL;
  const entry *first = semibandit_entries;
  while (first->name && strcmp(first->name, name)) first++;
  if (!first->name || strcmp(first->fingerprint, fingerprint)) {
    Py_INCREF(Py_None);
    return Py_None;
  }
  binding *b = calloc(1, sizeof *b);
  if (!b) return PyErr_NoMemory();
  b->first = first;
  while (first->name && !strcmp(first->name, name)) b->n++, first++;
  Py_INCREF(otherwise);
  b->otherwise = otherwise;
  b->method.ml_name = b->first->name;
  b->method.ml_meth = (PyCFunction)(void (*)(void))run;
  b->method.ml_flags = METH_FASTCALL;
  PyObject *capsule = PyCapsule_New(b, "semibandit", NULL);
  if (!capsule) return NULL;
  PyObject *function = PyCFunction_NewEx(&b->method, capsule, NULL);
  Py_DECREF(capsule);
  return function;
}

static PyObject *address(PyObject *self, PyObject *args) {
  const char *name, *fingerprint, *spec;
  if (!PyArg_ParseTuple(args, "sss", &name, &fingerprint, &spec)) return NULL;
  for (const entry *e = semibandit_entries; e->name; e++)
    if (!strcmp(e->name, name) && !strcmp(e->fingerprint, fingerprint) && !strcmp(e->spec, spec))
      return PyLong_FromVoidPtr((void *)e->level[level]);
  return PyLong_FromLong(0);
}

static PyObject *list_entries(PyObject *self, PyObject *none) {
  PyObject *list = PyList_New(0);
  for (const entry *e = semibandit_entries; list && e->name; e++) {
    PyObject *item = Py_BuildValue("(sss)", e->name, e->fingerprint, e->spec);
    if (!item || PyList_Append(list, item)) {
      Py_XDECREF(item);
      Py_CLEAR(list);
    } else
      Py_DECREF(item);
  }
  return list;
}

/* Whether `arms` and `rewards` can go to kernels as they are: vectors of one length, int64 and float64. */
static int fits(PyObject *const *args, Py_ssize_t n) {
  int fit = fast_arrays && n == 2;
  for (int i = 0; i < 2 && fit; i++) {
    const array *a = (const array *)args[i];
    fit = (PyObject *)Py_TYPE(args[i]) == ndarray && a->nd == 1 && a->descr == descrs[1 - i] &&
          (a->flags & (C_CONTIGUOUS | ALIGNED | WRITEABLE)) == (C_CONTIGUOUS | ALIGNED | WRITEABLE);
  }
  return fit && ((const array *)args[0])->dimensions[0] == ((const array *)args[1])->dimensions[0];
}

static PyObject *ready(PyObject *self, PyObject *const *args, Py_ssize_t n) { return PyBool_FromLong(fits(args, n)); }

/* -- straight calls (policies/straight.py): lock, arrays and kernel of a round with nothing of Python's in between ------
 *
 * Arguments that stay the same are read once and kept; those that change stand together, from slot `at` on. */
#define MOST_STRAIGHT 24
typedef struct {
  const entry *e;
  int64_t slots[MOST_STRAIGHT];
  int n, at;
  /* the arguments; methods of the policy's lock; int64[1], 0 once the arguments are out of date */
  PyObject *args, *acquire, *release, *current;
  /* for turns: what makes the array of the answer, of what; whose _lam is set to query[place] */
  PyObject *empty, *shape, *engine, *query;
  int64_t rank, place;
} straight;
static PyObject *name_t, *name_lam, *name_copy;

static void forget(PyObject *capsule) {
  straight *s = PyCapsule_GetPointer(capsule, "straight");
  PyObject *held[] = {s->args, s->acquire, s->release, s->current, s->empty, s->shape, s->engine, s->query};
  for (int i = 0; i < 8; i++) Py_XDECREF(held[i]);
  free(s);
}

/* A capsule of the call function(*args), whose arguments from number `place` on change; NULL without an error where it
 * cannot be made so. */
static PyObject *fix(PyObject *function, PyObject *args, Py_ssize_t place, PyObject *lock, PyObject *current) {
  PyObject *self = fast_arrays && PyCFunction_Check(function) ? PyCFunction_GetSelf(function) : NULL;
  const binding *b = self && PyCapsule_IsValid(self, "semibandit") ? PyCapsule_GetPointer(self, "semibandit") : NULL;
  straight *s = b ? calloc(1, sizeof *s) : NULL;
  if (!s) return NULL;
  call c;
  c.n_views = 0;
  Py_ssize_t n = PyTuple_Size(args);
  for (const entry *e = b->first; e < b->first + b->n && !s->e; e++) {
    const char *p = e->spec;
    Py_ssize_t i = 0;
    for (c.n_slots = 0; i < n && *p != ':' && !c.n_views; i++) {
      if (i == place) s->at = c.n_slots;
      if (!read_one(&p, PyTuple_GetItem(args, i), &c, 1)) break;
    }
    if (i == n && *p == ':' && !c.n_views && c.n_slots <= MOST_STRAIGHT) s->e = e;
    release(&c);
  }
  PyObject *capsule = s->e ? PyCapsule_New(s, "straight", forget) : NULL;
  if (!capsule) {
    free(s);
    return NULL;
  }
  memcpy(s->slots, c.slots, sizeof(int64_t) * (size_t)(s->n = c.n_slots));
  Py_INCREF(s->args = args);
  Py_INCREF(s->current = current);
  s->acquire = PyObject_GetAttrString(lock, "acquire");
  s->release = PyObject_GetAttrString(lock, "release");
  if (s->acquire && s->release) return capsule;
  Py_DECREF(capsule);
  return NULL;
}

/* Take the lock; 1 if the arguments are still those of the policy, 0 if not (and the lock is free), -1 with an error. */
static int enter(const straight *s) {
  PyObject *taken = PyObject_CallNoArgs(s->acquire);
  if (!taken) return -1;
  Py_DECREF(taken);
  if (*(const int64_t *)((const array *)s->current)->data) return 1;
  PyObject *free_again = PyObject_CallNoArgs(s->release);
  if (!free_again) return -1;
  Py_DECREF(free_again);
  return 0;
}

/* Give the lock back and hand `answer` on, or the error that is set. */
static PyObject *leave(const straight *s, PyObject *answer) {
  PyObject *kind, *value, *trace;
  PyErr_Fetch(&kind, &value, &trace);
  PyObject *given = PyObject_CallNoArgs(s->release);
  if (!given) Py_CLEAR(answer);
  Py_XDECREF(given);
  if (kind) PyErr_Restore(kind, value, trace);
  return answer;
}

/* Run the kernel; what it answers, or with an error set anything. */
static int64_t go(const straight *s, int64_t *slots) {
  int32_t status;
  void *value = NULL, *raised = NULL;
  Py_BEGIN_ALLOW_THREADS
  status = s->e->level[level](&value, &raised, (int64_t)(intptr_t)slots);
  Py_END_ALLOW_THREADS
  if (status != 0 && status != -2)
    PyErr_Format(PyExc_RuntimeError, "the kernel %s failed with status %d", s->e->name, (int)status);
  return slots[0];
}

static PyObject *play(const straight *s, PyObject *policy) {
  int64_t slots[MOST_STRAIGHT];
  memcpy(slots, s->slots, sizeof(int64_t) * (size_t)s->n);
  PyObject *last = PyObject_GetAttr(policy, name_t);
  if (!last) return NULL;
  slots[s->at] = PyLong_AsLongLong(last) + 1;
  Py_DECREF(last);
  if (PyErr_Occurred()) return NULL;
  PyObject *now = PyLong_FromLongLong(slots[s->at]), *arms = PyObject_Call(s->empty, s->shape, NULL), *lam = NULL;
  if (!now || !arms) goto failed;
  slots[s->at + 1] = (int64_t)(intptr_t)((const array *)arms)->data;
  slots[s->at + 2] = s->rank;
  int64_t n = go(s, slots);
  if (PyErr_Occurred()) goto failed;
  if (n < 0) { /* it must ask Python, and changed nothing */
    Py_DECREF(now);
    Py_DECREF(arms);
    Py_INCREF(Py_None);
    return Py_None;
  }
  const array *query = (const array *)s->query;
  if (query->descr == descrs[0])
    lam = PyFloat_FromDouble(((const double *)query->data)[s->place]);
  else
    lam = PyFloat_FromDouble((double)((const int64_t *)query->data)[s->place]);
  if (!lam || PyObject_SetAttr(policy, name_t, now) || PyObject_SetAttr(s->engine, name_lam, lam)) goto failed;
  if (n < s->rank) {
    PyObject *part = PySequence_GetSlice(arms, 0, (Py_ssize_t)n);
    Py_DECREF(arms);
    PyObject *copy = part ? PyObject_GetAttr(part, name_copy) : NULL;
    arms = copy ? PyObject_CallNoArgs(copy) : NULL;
    Py_XDECREF(copy);
    Py_XDECREF(part);
  }
  Py_DECREF(lam);
  Py_DECREF(now);
  return arms;
failed:
  Py_XDECREF(lam);
  Py_XDECREF(now);
  Py_XDECREF(arms);
  return NULL;
}

static PyObject *take_turn(PyObject *self, PyObject *policy) {
  const straight *s = PyCapsule_GetPointer(self, "straight");
  int in = s ? enter(s) : -1;
  if (in < 0) return NULL;
  if (in > 0) return leave(s, play(s, policy));
  Py_INCREF(Py_None);
  return Py_None;
}

static PyObject *take_feedback(PyObject *self, PyObject *const *args, Py_ssize_t n) {
  const straight *s = PyCapsule_GetPointer(self, "straight");
  int in = s && fits(args, n) ? enter(s) : s ? 0 : -1;
  if (in < 0) return NULL;
  if (in == 0) return PyBool_FromLong(0);
  int64_t slots[MOST_STRAIGHT];
  memcpy(slots, s->slots, sizeof(int64_t) * (size_t)s->n);
  for (int i = 0; i < 2; i++) {
    slots[s->at + 2 * i] = (int64_t)(intptr_t)((const array *)args[i])->data;
    slots[s->at + 2 * i + 1] = ((const array *)args[i])->dimensions[0];
  }
  int64_t code = go(s, slots);
  return leave(s, PyErr_Occurred() ? NULL : PyBool_FromLong(code == 0));
}

static PyObject *none_unless_error(void) {
  if (PyErr_Occurred()) return NULL;
  Py_INCREF(Py_None);
  return Py_None;
}

static PyObject *turn(PyObject *module, PyObject *given) {
  static PyMethodDef method = {"turn", take_turn, METH_O, "turn(policy): arms, or None if Python must do it"};
  PyObject *function, *args, *lock, *current, *empty, *shape, *engine, *query;
  Py_ssize_t place;
  long long rank, where;
  if (!PyArg_ParseTuple(given, "OO!nOOOO!LOOL", &function, &PyTuple_Type, &args, &place, &lock, &current, &empty,
                        &PyTuple_Type, &shape, &rank, &engine, &query, &where))
    return NULL;
  PyObject *capsule = fix(function, args, place, lock, current);
  if (!capsule) return none_unless_error();
  straight *s = PyCapsule_GetPointer(capsule, "straight");
  Py_INCREF(s->empty = empty);
  Py_INCREF(s->shape = shape);
  Py_INCREF(s->engine = engine);
  Py_INCREF(s->query = query);
  s->rank = rank;
  s->place = where;
  PyObject *made = PyCFunction_NewEx(&method, capsule, NULL);
  Py_DECREF(capsule);
  return made;
}

static PyObject *feedback(PyObject *module, PyObject *given) {
  static PyMethodDef method = {"feedback", (PyCFunction)(void (*)(void))take_feedback, METH_FASTCALL,
                               "feedback(arms, rewards): whether all was done, else nothing was"};
  PyObject *function, *args, *lock, *current;
  Py_ssize_t place;
  if (!PyArg_ParseTuple(given, "OO!nOO", &function, &PyTuple_Type, &args, &place, &lock, &current)) return NULL;
  PyObject *capsule = fix(function, args, place, lock, current);
  if (!capsule) return none_unless_error();
  PyObject *made = PyCFunction_NewEx(&method, capsule, NULL);
  Py_DECREF(capsule);
  return made;
}

static int level_here(void) {
#if defined(__x86_64__)
  __builtin_cpu_init();
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2");
#else
  return 0;
#endif
}

static PyMethodDef methods[] = {
    {"bind", bind, METH_VARARGS, "bind(name, fingerprint, otherwise): a function, or None if there is no such kernel"},
    {"address", address, METH_VARARGS, "address(name, fingerprint, signature): where a kernel is, or 0"},
    {"ready", (PyCFunction)(void (*)(void))ready, METH_FASTCALL, "ready(arms, rewards): whether kernels can take them"},
    {"turn", turn, METH_VARARGS, "turn(kernel, args, place, lock, current, empty, shape, rank, engine, query, where)"},
    {"feedback", feedback, METH_VARARGS, "feedback(kernel, args, place, lock, current)"},
    {"entries", list_entries, METH_NOARGS, "entries(): (name, fingerprint, signature) of every kernel"},
    {0}};
static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, "semibandit.compiled._native", 0, -1, methods, 0, 0, 0, 0};

/* Whether arrays look as the struct above says, seen on one example. */
static int arrays_are_known(PyObject *numpy) {
  PyObject *example = PyObject_CallMethod(numpy, "zeros", "((ii))", 2, 3);
  PyObject *ctypes = example ? PyObject_GetAttrString(example, "ctypes") : NULL;
  PyObject *data = ctypes ? PyObject_GetAttrString(ctypes, "data") : NULL;
  PyObject *descr = example ? PyObject_GetAttrString(example, "dtype") : NULL;
  int known = 0;
  if (data && descr) {
    const array *a = (const array *)example;
    known = (PyObject *)Py_TYPE(example) == ndarray && a->nd == 2 && a->data == PyLong_AsVoidPtr(data) &&
            a->dimensions[0] == 2 && a->dimensions[1] == 3 && a->strides[0] == 24 && a->strides[1] == 8 &&
            a->descr == descr && (a->flags & 0x501) == 0x501;
  }
  PyErr_Clear();
  Py_XDECREF(descr);
  Py_XDECREF(data);
  Py_XDECREF(ctypes);
  Py_XDECREF(example);
  return known;
}

PyMODINIT_FUNC PyInit__native(void) {
  static const char *const names[] = {"float64", "int64", "int32", "uint8", "bool", "uint64"};
  PyObject *numpy = PyImport_ImportModule("numpy");
  if (!numpy) return NULL;
  PyObject *dtype = PyObject_GetAttrString(numpy, "dtype");
  for (int i = 0; dtype && i < 6; i++)
    if (!(descrs[i] = PyObject_CallFunction(dtype, "s", names[i]))) return NULL;
  ndarray = PyObject_GetAttrString(numpy, "ndarray");
  uint64_type = PyObject_GetAttrString(numpy, "uint64");
  bool_type = PyObject_GetAttrString(numpy, "bool_");
  name_t = PyUnicode_InternFromString("_t");
  name_lam = PyUnicode_InternFromString("_lam");
  name_copy = PyUnicode_InternFromString("copy");
  if (!dtype || !ndarray || !uint64_type || !bool_type || !name_t || !name_lam || !name_copy) return NULL;
  fast_arrays = arrays_are_known(numpy);
  Py_DECREF(dtype);
  Py_DECREF(numpy);
  level = semibandit_levels[1] ? level_here() : 0;
  PyObject *m = PyModule_Create(&definition);
  if (!m) return NULL;
  PyModule_AddStringConstant(m, "level", semibandit_levels[level]);
  PyModule_AddStringConstant(m, "sources", semibandit_sources);
  PyModule_AddIntConstant(m, "fast_arrays", fast_arrays);
  PyObject *levels = Py_BuildValue(semibandit_levels[1] ? "(ss)" : "(s)", semibandit_levels[0], semibandit_levels[1]);
  if (!levels || PyModule_AddObject(m, "levels", levels)) return NULL;
  return m;
}
