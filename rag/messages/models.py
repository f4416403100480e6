"""Sentences of rag/models."""

from __future__ import annotations


def _optional(kind: str, english: str, chinese: str, setting: str, example: str) -> dict[str, tuple[str, str]]:
    """What can be wrong with a model that need not be there."""
    return {
        f"{kind}_no_folder": (
            f"There is no {english} at {{name}}. Set {setting} to a model name such as {example}, to a folder that "
            "exists, or leave it empty.",
            f"{{name}} 处没有{chinese}。请把 {setting} 设为模型名（如 {example}）或存在的文件夹，或留空。",
        ),
        f"{kind}_incomplete": (
            f"The {english} {{name}} is incomplete: {{folder}} has no usable {{missing}}. Download the whole model "
            f"again, or leave {setting} empty.",
            f"{chinese} {{name}} 不完整：{{folder}} 中缺少可用的 {{missing}}。请重新下载模型，或将 {setting} 留空。",
        ),
        f"{kind}_unreadable": (
            f"The {english} {{name}} could not be loaded from {{folder}}. Download it again, or leave {setting} empty.",
            f"无法从 {{folder}} 加载{chinese} {{name}}。请重新下载，或将 {setting} 留空。",
        ),
        f"{kind}_unknown": (
            f"The hub {{hub}} has no public model named {{name}}. Check {setting}; a private model needs HF_TOKEN.",
            f"{{hub}} 上没有名为 {{name}} 的公开模型。请检查 {setting}；私有模型需要设置 HF_TOKEN。",
        ),
        f"{kind}_unreachable": (
            f"The {english} {{name}} could not be fetched from {{hub}}. Check the network, set HF_ENDPOINT to a "
            f"mirror, set {setting} to a folder that holds the model, or leave it empty.",
            f"无法从 {{hub}} 获取{chinese} {{name}}。请检查网络，用 HF_ENDPOINT 指定镜像站，把 {setting} "
            "设为存有该模型的文件夹，或留空。",
        ),
        f"{kind}_not_finite": (
            f"The {english} {{name}} gave a score that is not a number. Its weights may be damaged: download it again, "
            f"or leave {setting} empty.",
            f"{chinese} {{name}} 给出了无效的分数，权重文件可能已损坏。请重新下载，或将 {setting} 留空。",
        ),
    }


_RERANKER, _VERIFIER = "BAAI/bge-reranker-v2-m3", "MoritzLaurer/mDeBERTa-v3-base-mnli-xnli"

MESSAGES: dict[str, tuple[str, str]] = {
    **_optional("reranker", "reranker", "重排序模型", "RERANKER_MODEL", _RERANKER),
    **_optional("verifier", "verifier", "核对模型", "VERIFIER_MODEL", _VERIFIER),
    "reranker_wrong_kind": (
        "The model {name} is not a reranker that gives one score for a pair of texts. Set RERANKER_MODEL "
        "to one such as BAAI/bge-reranker-v2-m3, or leave it empty.",
        "{name} 不是为一对文本给出单个分数的重排序模型。请把 RERANKER_MODEL 设为 BAAI/bge-reranker-v2-m3 "
        "之类的模型，或留空。",
    ),
    "verifier_wrong_kind": (
        "The model {name} cannot check statements: it has neither a label for entailment nor one for hallucinated "
        f"tokens. Set VERIFIER_MODEL to one such as {_VERIFIER}, or leave it empty.",
        "{name} 无法核对陈述：它既没有表示蕴含（entailment）的标签，也没有表示虚构词的标签。"
        f"请把 VERIFIER_MODEL 设为 {_VERIFIER} 之类的模型，或留空。",
    ),
    "package_missing": (
        "The package {package} is not installed. Run `pip install -r requirements.txt` again.",
        "未安装 {package}。请重新运行 `pip install -r requirements.txt`。",
    ),
    "weights_changed": (
        "The built-in model's weights are not the published ones: {file} was changed or damaged, so it is not loaded. "
        "Remove .venv and install again.",
        "内置模型的权重与发布的不一致：{file} 被改动或已损坏，未加载。请删除 .venv 后重新安装。",
    ),
    "embedding_no_folder": (
        "There is no embedding model at {name}. Set EMBEDDING_MODEL to builtin, to a model name such as "
        "BAAI/bge-m3, or to a folder that exists.",
        "{name} 处没有嵌入模型。请把 EMBEDDING_MODEL 设为 builtin、模型名（如 BAAI/bge-m3）或存在的文件夹。",
    ),
    "embedding_incomplete": (
        "The embedding model {name} is incomplete: {folder} has no usable {missing}. Download the whole "
        "model again, or set EMBEDDING_MODEL=builtin.",
        "嵌入模型 {name} 不完整：{folder} 中缺少可用的 {missing}。请重新下载整个模型，或设置 EMBEDDING_MODEL=builtin。",
    ),
    "embedding_unreadable": (
        "The embedding model {name} could not be loaded from {folder}. Download it again, or set "
        "EMBEDDING_MODEL=builtin.",
        "无法从 {folder} 加载嵌入模型 {name}。请重新下载，或设置 EMBEDDING_MODEL=builtin。",
    ),
    "embedding_unknown": (
        "The hub {hub} has no public model named {name}. Check EMBEDDING_MODEL; a private model needs HF_TOKEN.",
        "{hub} 上没有名为 {name} 的公开模型。请检查 EMBEDDING_MODEL；私有模型需要设置 HF_TOKEN。",
    ),
    "hub_unreachable": (
        "The embedding model {name} could not be fetched from {hub}. Check the network, set HF_ENDPOINT "
        "to a mirror, or set EMBEDDING_MODEL to a folder that holds the model or to builtin.",
        "无法从 {hub} 获取嵌入模型 {name}。请检查网络，用 HF_ENDPOINT 指定镜像站，或把 EMBEDDING_MODEL "
        "设为存有该模型的文件夹或 builtin。",
    ),
    "model_failed": (
        "The embedding model could not be loaded; the log names the reason.",
        "无法加载嵌入模型，日志中有原因。",
    ),
    "embedding_pooling": (
        "The embedding model {name} pools its tokens in a way that is not supported. Choose a model "
        "with cls, mean or last-token pooling.",
        "嵌入模型 {name} 的池化方式不受支持。请选用 cls、mean 或 last-token 池化的模型。",
    ),
    "embedding_not_finite": (
        "The embedding model {name} gave a vector that is not a number. Its weights may be damaged: "
        "download it again, or set EMBEDDING_MODEL=builtin.",
        "嵌入模型 {name} 产生了无效的向量，权重文件可能已损坏。请重新下载，或设置 EMBEDDING_MODEL=builtin。",
    ),
    "chat_not_set": (
        "No chat model is set. Set LLM_MODEL, or enter a model in Settings.",
        "尚未设置对话模型。请设置 LLM_MODEL，或在“设置”页填写模型。",
    ),
    "chat_unknown_provider": (
        "LLM_MODEL={name} names no provider that is known here. Write provider:name, such as "
        "openai:gpt-4o-mini, or set LLM_BASE_URL for an OpenAI-compatible server.",
        "LLM_MODEL={name} 中没有可识别的服务商。请写成 provider:name（如 openai:gpt-4o-mini），或用 "
        "LLM_BASE_URL 指定兼容 OpenAI 的服务。",
    ),
    "chat_package_missing": (
        "LLM_MODEL={name} needs the package {package}. Run `pip install {package}`, or set LLM_BASE_URL "
        "for an OpenAI-compatible server.",
        "LLM_MODEL={name} 需要 {package}。请运行 `pip install {package}`，或用 LLM_BASE_URL 指定兼容 OpenAI 的服务。",
    ),
    "chat_key_missing": (
        "The chat model needs a key. Set LLM_API_KEY, or enter a key in Settings.",
        "对话模型需要密钥。请设置 LLM_API_KEY，或在“设置”页填写密钥。",
    ),
    "chat_wrong_key": (
        "The chat service refused the key. Check it in Settings, or LLM_API_KEY: it must belong to this service.",
        "对话服务拒绝了该密钥。请在“设置”页或 LLM_API_KEY 中检查密钥，并确认它属于此服务。",
    ),
    "chat_forbidden": (
        "The chat service does not allow this key to use this model. Check the account, or choose another model.",
        "该密钥无权使用此模型。请检查账户权限，或更换模型。",
    ),
    "chat_no_credit": (
        "The chat service says that the account has no credit left. Top it up, or use another key.",
        "对话服务提示账户余额不足。请充值，或更换密钥。",
    ),
    "chat_unknown_model": (
        "The chat service knows no such model. Choose another in Settings, or with LLM_MODEL.",
        "对话服务中没有该模型。请在“设置”页或用 LLM_MODEL 更换模型。",
    ),
    "chat_rate_limit": (
        "The chat service is receiving too many requests. Wait a minute and try again.",
        "对话服务请求过多。请稍等一分钟后重试。",
    ),
    "chat_timeout": (
        "The chat service did not answer in time. Try again, or choose a faster model.",
        "对话服务未在时限内回应。请重试，或选用更快的模型。",
    ),
    "chat_unreachable": (
        "The chat service cannot be reached. Check that it runs, and its address in Settings or LLM_BASE_URL.",
        "无法连接对话服务。请确认服务已启动，并检查“设置”页或 LLM_BASE_URL 中的地址。",
    ),
    "chat_server_error": (
        "The chat service failed (status {status}). Try again later.",
        "对话服务出错（状态码 {status}）。请稍后重试。",
    ),
    "chat_broken_off": (
        "The connection to the chat service broke off in the middle of the answer. Try again.",
        "对话服务的连接在回答中途断开。请重试。",
    ),
    "chat_too_long": (
        "The question and its passages are too long for this chat model. Ask a shorter question, or "
        "choose a model with a larger context.",
        "问题和段落超出了该模型的上下文长度。请缩短问题，或选用上下文更大的模型。",
    ),
    "chat_refused": (
        "The chat service refused the request (status {status}). It may not suit this use: choose another model.",
        "对话服务拒绝了请求（状态码 {status}）。该模型可能不适用，请更换模型。",
    ),
    "chat_parameter_refused": (
        "The chat service refused {names} as chosen under Options. Take it away there, or choose another value.",
        "对话服务拒绝了“选项”中选择的 {names}。请在那里去掉它，或换一个值。",
    ),
    "chat_parameter_unknown": (
        "This chat model's service has no {names}. Take it away under Options.",
        "该对话模型的服务没有 {names}。请在“选项”中去掉它。",
    ),
    "chat_wrong_address": (
        "There is no chat service at this address (status {status}). Check it in Settings, or LLM_BASE_URL: it "
        "often ends in /v1.",
        "该地址没有对话服务（状态码 {status}）。请检查“设置”页或 LLM_BASE_URL 中的地址（通常以 /v1 结尾）。",
    ),
    "chat_redirected": (
        "The chat service sends on to another address, which is not followed. Enter the final address.",
        "对话服务要求跳转到其他地址，出于安全考虑不予跟随。请填写最终地址。",
    ),
    "chat_address_blocked": (
        "The chat service was not asked, for safety: {why_en}",
        "出于安全考虑，未连接该对话服务：{why_zh}",
    ),
    "chat_own_forbidden": (
        "Connecting a chat model of one's own is switched off here (OWN_MODELS).",
        "此处不允许接入自己的对话模型（OWN_MODELS）。",
    ),
    # Said at the form, in its words
    "connect_works": ("Connected: {model} answers.", "已接入：{model} 可用。"),
    "connect_no_model": ("Give the model's name.", "请填写模型名称。"),
    "connect_no_address": (
        "Give the service's address, such as https://api.deepseek.com/v1.",
        "请填写服务地址，例如 https://api.deepseek.com/v1。",
    ),
    "connect_not_http": (
        "The address begins with http:// or https://, and holds no name, password, ? or #.",
        "服务地址须以 http:// 或 https:// 开头，且不含用户名、密码、? 或 #。",
    ),
    "connect_key_missing": ("This service needs a key.", "此服务需要密钥。"),
    "connect_wrong_key": (
        "The service at {address} refused the key. Check that the key is whole and belongs to this service.",
        "{address} 拒绝了该密钥。请确认密钥完整，并且属于此服务。",
    ),
    "connect_forbidden": (
        "This key may not use the model {model}. Choose another model, or check the account.",
        "该密钥无权使用模型 {model}。请更换模型，或检查账户权限。",
    ),
    "connect_unreachable": (
        "Nothing answers at {address}. Check the address, and that the service runs.",
        "{address} 没有回应。请检查服务地址，并确认服务已启动。",
    ),
    "connect_unknown_model": (
        "The service at {address} has no model named {model}. Check the model's name.",
        "{address} 没有名为 {model} 的模型。请检查模型名称。",
    ),
    "connect_wrong_address": (
        "There is no chat service at {address} (status {status}). Check the address: it often ends in /v1.",
        "{address} 处没有对话服务（状态码 {status}）。请检查服务地址（通常以 /v1 结尾）。",
    ),
    "connect_unusable": (
        "What answers at {address} does not speak the OpenAI protocol. Check the address: it often ends in /v1.",
        "{address} 的回应不符合 OpenAI 协议。请检查服务地址（通常以 /v1 结尾）。",
    ),
    "connect_redirected": (
        "{address} sends on to another address, which is not followed. Enter the final address.",
        "{address} 要求跳转到其他地址，出于安全考虑不予跟随。请填写最终地址。",
    ),
    "connect_refused": (
        "The service at {address} refused the request (status {status}). Check the model {model}.",
        "{address} 拒绝了请求（状态码 {status}）。请检查模型 {model}。",
    ),
    "connect_no_list": (
        "The service at {address} does not tell its models. Type the model's name.",
        "{address} 没有提供模型列表。请直接填写模型名称。",
    ),
    "chat_unusable": (
        "The chat model's reply could not be used: it was not in the form that was asked for. Try "
        "again, or choose another model.",
        "对话模型的回复格式不符合要求，无法使用。请重试，或更换模型。",
    ),
    "chat_failed": (
        "The chat model failed for a reason that it did not give. Try again.",
        "对话模型因未知原因失败。请重试。",
    ),
}
