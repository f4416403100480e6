FROM python:3.12-slim

ENV PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1 PIP_NO_CACHE_DIR=1 RAG_DATA_DIR=/data
WORKDIR /app

# torch first and as its CPU build: the plain pin would bring CUDA's gigabytes.
COPY requirements.txt constraints.txt ./
RUN pip install --no-deps --extra-index-url https://download.pytorch.org/whl/cpu "torch==2.13.0+cpu" \
    && pip install -r requirements.txt -c constraints.txt

COPY . .
RUN useradd --system --uid 10001 --home-dir /data pagelight \
    && mkdir /data && chown pagelight /data
USER pagelight
VOLUME /data
EXPOSE 8501

CMD ["python", "-m", "streamlit", "run", "main.py", "--server.address", "0.0.0.0", "--server.port", "8501", "--server.headless", "true"]
