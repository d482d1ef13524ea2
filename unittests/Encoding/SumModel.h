/*===- SumModel.h - An encoder whose vectors are known ----------*- C++ -*-===*
 *
 * Part of the Sandwich project, under the Apache License v2.0 with LLVM
 * Exceptions. See LICENSE for license information.
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 *===----------------------------------------------------------------------===*/

#ifndef SANDWICH_UNITTESTS_ENCODING_SUMMODEL_H
#define SANDWICH_UNITTESTS_ENCODING_SUMMODEL_H

#define SUM_MODEL_THREADS 2
#define SUM_MODEL_TOKENS 64
#define SUM_MODEL_CONTEXT 32
#define SUM_MODEL_VOCABULARY 100
#define SUM_MODEL_COLUMNS 4
#define SUM_MODEL_TYPES 2
/** A text with it has no vector. */
#define SUM_MODEL_SPOILING_ID 13

#endif /* SANDWICH_UNITTESTS_ENCODING_SUMMODEL_H */
