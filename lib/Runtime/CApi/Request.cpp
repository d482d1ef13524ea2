//===- Request.cpp - Requests that continue prompts, for C ----------------===//
//
// Part of the Sandwich project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Calls.h"
#include "GenerationOptions.h"
#include "Model.h"
#include "RequestEvents.h"

#include <memory>

using namespace sandwich;
using namespace sandwich::capi;

struct sandwich_request {
  std::shared_ptr<RunningService> service;
  /// The service's thread has it as well, as long as the request lives.
  std::shared_ptr<RequestEvents> events;
  RequestId id = 0;
};

sandwich_status
sandwich_request_submit(sandwich_model *model, const int32_t *prompt,
                        size_t count,
                        const sandwich_generation_options *options,
                        sandwich_request **out, char **error) {
  return guard(error, [&]() -> Status {
    SANDWICH_RETURN_IF_ERROR(require(model, "model"));
    SANDWICH_RETURN_IF_ERROR(requireArray(prompt, count, "prompt"));
    SANDWICH_RETURN_IF_ERROR(require(out, "out"));
    SANDWICH_ASSIGN_OR_RETURN(const sandwich_generation_options given,
                              readStructure(options, "generation options"));
    SANDWICH_ASSIGN_OR_RETURN(GenerationRequest generation, makeRequest(given));
    // Before it is copied.
    if (count > model->description.model.context_length())
      return makeError(ErrorKind::ContextExceeded, "the prompt of ", count,
                       " tokens is longer than the model's context of ",
                       model->description.model.context_length(), " tokens");
    if (count > 0)
      generation.prompt.assign(prompt, prompt + count);
    auto request = std::make_unique<sandwich_request>(
        model->service,
        std::make_shared<RequestEvents>(given.on_event, given.user_data));
    const auto &events = request->events;
    SANDWICH_ASSIGN_OR_RETURN(
        request->id,
        model->service->submit(
            std::move(generation),
            {.onToken =
                 [events](const GeneratedToken &token) { events->tell(token); },
             .onEnd = [events](const RequestEnd &end) { events->tell(end); }}));
    *out = request.release();
    return {};
  });
}

sandwich_status sandwich_request_next(sandwich_request *request,
                                      double timeout_seconds,
                                      const sandwich_event **out,
                                      char **error) {
  return guard(error, [&]() -> Status {
    SANDWICH_RETURN_IF_ERROR(require(request, "request"));
    SANDWICH_RETURN_IF_ERROR(require(out, "out"));
    SANDWICH_RETURN_IF_ERROR(request->service->checkProcess());
    SANDWICH_ASSIGN_OR_RETURN(*out, request->events->next(timeout_seconds));
    return {};
  });
}

sandwich_status sandwich_request_descriptor(sandwich_request *request, int *out,
                                            char **error) {
  return guard(error, [&]() -> Status {
    SANDWICH_RETURN_IF_ERROR(require(request, "request"));
    SANDWICH_RETURN_IF_ERROR(require(out, "out"));
    SANDWICH_RETURN_IF_ERROR(request->service->checkProcess());
    SANDWICH_ASSIGN_OR_RETURN(*out, request->events->readyDescriptor());
    return {};
  });
}

void sandwich_request_cancel(sandwich_request *request) {
  if (request)
    request->service->cancel(request->id);
}

void sandwich_request_free(sandwich_request *request) {
  if (!request)
    return;
  if (!request->service->checkProcess()) {
    // What the threads of the parent were changing is left as it is.
    (void)new sandwich_request(std::move(*request));
  } else {
    request->service->cancel(request->id);
    request->events->close();
  }
  delete request;
}
